import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The way from nothing to the schema, and what is refused on it.
@Suite(.timeLimit(.minutes(5)))
struct MigrationTests {
    @Test(arguments: DatabaseServer.allCases)
    func `An empty database is migrated once, and shows how it stands`(server: DatabaseServer) async throws {
        try await TemporaryDatabase.empty(on: server) { database in
            let connection = try await database.connect()
            let runner = MigrationRunner(connection)
            #expect(try await SchemaRevision.read(from: connection) == .tooOld(0))
            #expect(try await runner.status().allSatisfy { $0.state == .pending })
            #expect(try await runner.pending() == Migration.all)
            #expect(try await connection.texts("SELECT nspname FROM pg_namespace WHERE nspname = 'postbell'") == [])
            #expect(try await runner.apply() == Migration.all)
            #expect(try await runner.apply() == [])
            #expect(try await runner.status().map(\.version) == Array(1...Migration.all.count))
            #expect(try await SchemaRevision.read(from: connection) == .current)
            await connection.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Two at once migrate one after the other`(server: DatabaseServer) async throws {
        try await TemporaryDatabase.empty(on: server) { database in
            let (one, two) = (try await database.connect(), try await database.connect())
            async let first = MigrationRunner(one).apply()
            async let second = MigrationRunner(two).apply()
            #expect(try await first.count + second.count == Migration.all.count)
            await one.close()
            await two.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A file that changed after it was applied is refused`(server: DatabaseServer) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            let connection = try await database.connect()
            try await connection.execute("UPDATE postbell.schema_migrations SET checksum = 'x' WHERE version = 2")
            await #expect(throws: MigrationError.changed(version: 2, name: "catalog")) {
                try await MigrationRunner(connection).apply()
            }
            #expect(try await SchemaRevision.read(from: connection) == .changed(2))
            await connection.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A newer schema is refused`(server: DatabaseServer) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            let connection = try await database.connect()
            try await connection.execute(
                "INSERT INTO postbell.schema_migrations (version, name, checksum) VALUES (9000, 'later', 'x')")
            await #expect(throws: MigrationError.tooNew(version: 9000)) {
                try await MigrationRunner(connection).apply()
            }
            #expect(try await SchemaRevision.read(from: connection) == .tooNew(9000))
            await connection.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A migration that fails leaves no trace and keeps the ones before`(server: DatabaseServer) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            let connection = try await database.connect()
            let next = Migration.all.count + 1
            let good = Migration(version: next, name: "good", checksum: "a", sql: "CREATE TABLE postbell.good (x int);")
            let bad = Migration(
                version: next + 1, name: "bad", checksum: "b", sql: "CREATE TABLE postbell.bad (x int); SELECT 1 / 0;")
            let runner = MigrationRunner(connection, migrations: Migration.all + [good, bad])
            let applied = Counter()
            await #expect {
                try await runner.apply { _ in applied.add() }
            } throws: { error in
                guard case .failed(next + 1, "bad", "22012", _)? = error as? MigrationError else { return false }
                return true
            }
            #expect(applied.take() == 1)
            #expect(
                try await connection.texts(
                    "SELECT to_regclass('postbell.good') || ' ' || (to_regclass('postbell.bad') IS NULL)")
                    == ["postbell.good true"])
            await connection.close()
        }
    }

    /// CREATE on the database and membership in the schema's owner are enough where the roles exist.
    @Test(arguments: DatabaseServer.allCases)
    func `No superuser is needed`(server: DatabaseServer) async throws {
        // The roles are made by whoever comes first in the cluster.
        try await TemporaryDatabase.migrated(on: server) { _ in }
        try await TemporaryDatabase.empty(on: server) { database in
            let login = "test_migrator_\(database.name)"
            let admin = try await database.connect()
            try await admin.execute(
                """
                CREATE ROLE \(login) LOGIN; GRANT CREATE ON DATABASE \(database.name) TO \(login);
                GRANT postbell_owner TO \(login)
                """)
            let connection = try await PostgresConnection.connect(
                PostgresConfiguration("\(server.connectionString()) dbname=\(database.name) user=\(login)"),
                on: DatabaseServer.loop)
            #expect(try await MigrationRunner(connection).apply().count == Migration.all.count)
            #expect(
                try await connection.texts("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'postbell'")
                    == ["postbell_owner"])
            await connection.close()
            try await admin.execute("DROP OWNED BY \(login); DROP ROLE \(login)")
            await admin.close()
        }
    }
}
