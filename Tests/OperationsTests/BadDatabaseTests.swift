import Foundation
import Postgres
import Support
import Testing

@testable import Operations

/// A database that cannot be used, as each command that needs one says it.
@Suite(.serialized) struct BadDatabaseTests {
    /// What may never be seen, wherever it was put.
    private static let secret = "hush-hush"
    private static let commands = [["migrate", "--status"], ["ledger"], ["status"], ["check"], ["dispatch"]]

    /// Parameters of a connection that libpq cannot read or use.
    private static let parameters: [[String: String]] = [
        ["DATABASE_URL": "sslmode=\(secret)"],
        ["DATABASE_URL": "host=127.0.0.1 port=\(secret)"],
        ["DATABASE_URL": "host=127.0.0.1 port=1 keepalives=\(secret)"],
        ["DATABASE_URL": "hostaddr=\(secret)"],
        ["DATABASE_URL": "host=x password='\(secret)"],
        ["DATABASE_URL": "host=x nonsense=\(secret)"],
        ["DATABASE_URL": "postgresql://u:a@\(secret)@127.0.0.1/d"],
        ["DATABASE_URL": "postgresql://u:1/\(secret)@127.0.0.1/d"],
        ["DATABASE_URL": "service=\(secret)"],
        ["PGSSLMODE": secret], ["PGPORT": secret], ["PGSERVICE": secret],
    ]

    @Test(arguments: commands, parameters)
    func parametersThatCannotBeUsedAreAWrongConfiguration(command: [String], parameters: [String: String]) throws {
        let result = try Program.run(command, environment: parameters)
        #expect(result.status == 3, "\(result.output)\(result.errors)")
        let lines = Self.complaints(command, result)
        #expect(lines.count == 1, "\(result.output)\(result.errors)")
        #expect(
            lines.first?.contains("DATABASE_URL and libpq's variables; correct what is wrong there") == true, "\(lines)"
        )
        #expect(!(result.output + result.errors).contains(Self.secret))
    }

    @Test(arguments: commands.dropLast())
    func aServerOutOfReachEndsACommand(command: [String]) throws {
        let result = try Program.run(
            command, environment: ["DATABASE_URL": "postgresql://u:\(Self.secret)@127.0.0.1:1/d"])
        #expect(result.status == 4)
        let lines = Self.complaints(command, result)
        #expect(lines.count == 1, "\(result.output)\(result.errors)")
        #expect(lines.first?.contains("Connection refused") == true, "\(lines)")
        #expect(lines.first?.hasSuffix("; see that the server runs there and can be reached") == true, "\(lines)")
        #expect(!(result.output + result.errors).contains(Self.secret))
    }

    /// A database that is not there, and a login that may not get in: the server has answered, and refused.
    @Test(arguments: commands.dropLast())
    func aDatabaseThatDoesNotExistIsRefused(command: [String]) throws {
        let server = try DatabaseServer.postgres15.connectionString()
        let result = try Program.run(command, environment: ["DATABASE_URL": "\(server) dbname=no_such_database"])
        #expect(result.status == 6)
        #expect(Self.complaints(command, result).first?.contains("(SQLSTATE 3D000)") == true, "\(result.errors)")
        #expect(Self.complaints(command, result).first?.hasSuffix("; create the database, or correct its name") == true)
    }

    @Test func aWrongPasswordIsRefusedAndAWorkerWaitsForABetterOne() async throws {
        try await PasswordServer.run { server in
            for command in Self.commands.dropLast() {
                let result = try Program.run(command, environment: server.environment(password: Self.secret))
                #expect(result.status == 6)
                let line = Self.complaints(command, result).first ?? ""
                #expect(line.contains("password authentication failed"), "\(result.output)\(result.errors)")
                #expect(line.hasSuffix("; correct user and password, or the server's pg_hba.conf"), "\(line)")
                #expect(!(result.output + result.errors).contains(Self.secret))
            }
            let worker = try RunningProgram(["dispatch"], environment: server.environment(password: Self.secret))
            let waits = try #require(worker.line(containing: "waiting for the database"))
            #expect(waits.contains("sqlstate=28P01"))
            worker.terminate()
            #expect(worker.end() == 0)
            #expect(!worker.lines.joined().contains(Self.secret))
            #expect(try Program.run(["migrate", "--status"], environment: server.environment()).status == 1)
        }
    }

    private static let schemas: [(change: String, status: Int32, complaint: String, remedy: String)] = [
        ("DROP SCHEMA postbell CASCADE", 5, "the database has no schema of Postbell", "run `postbell migrate`"),
        (
            "DELETE FROM postbell.schema_migrations WHERE version > 3", 5, "the schema is at revision 3",
            "run `postbell migrate`"
        ),
        (
            "INSERT INTO postbell.schema_migrations (version, name, checksum) VALUES (9999, 'later', 'x')", 5,
            "the schema is at revision 9999, this program knows only", "install a newer version of this program"
        ),
        (
            "UPDATE postbell.schema_migrations SET checksum = 'x' WHERE version = 2", 5, "migration 2",
            "run the program that applied migration 2, or a newer one"
        ),
    ]

    @Test(arguments: schemas, [["ledger"], ["status"], ["check"], ["dispatch"]])
    func aSchemaOfAnotherRevisionIsSaid(
        schema: (change: String, status: Int32, complaint: String, remedy: String), command: [String]
    ) async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.execute(schema.change)
            let result = try Program.run(command, environment: ["DATABASE_URL": try database.connectionString])
            #expect(result.status == schema.status, "\(result.output)\(result.errors)")
            let lines = Self.complaints(command, result).filter { $0.contains(schema.complaint) }
            #expect(lines.count == 1, "\(result.output)\(result.errors)")
            #expect(lines.first?.hasSuffix("; \(schema.remedy)") == true, "\(lines)")
        }
    }

    /// What a command complains of: lines of standard error but for the log; the doctor's failures, which it prints.
    private static func complaints(_ command: [String], _ result: Program.Result) -> [String] {
        guard command == ["check"] else { return result.lines.filter { !$0.hasPrefix("ts=") } }
        return result.output.split(separator: "\n").map(String.init).filter { $0.hasPrefix("fail") }
    }
}

/// A cluster that asks for a password, made by the server under test with its own programs and its own user. It ends
/// by itself after two minutes, should the test not come to stop it.
private struct PasswordServer {
    private static let password = "right-password"
    let folder: String

    static func run(_ body: (PasswordServer) async throws -> Void) async throws {
        let folder = "/tmp/postbell-password-\(UInt32.random(in: 0...UInt32.max))"
        let connection = try await PostgresConnection.connect(
            DatabaseServer.postgres15.configuration(database: "postgres"), on: DatabaseServer.loop)
        let programs = try await connection.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").text(0, 0)
        let start = """
            mkdir -m 755 \(folder) && unset LC_ALL LANG; echo \(password) >\(folder)/password; \
            \(programs)/initdb -D \(folder)/data -U postgres -A scram-sha-256 --pwfile=\(folder)/password -E UTF8 \
            --locale=C --no-sync >\(folder)/initdb.log 2>&1 && \
            (timeout 120 \(programs)/postgres -D \(folder)/data -k \(folder) -p 5432 -c listen_addresses= -c fsync=off \
            -c shared_buffers=16MB >\(folder)/log 2>&1 </dev/null &); \
            for i in $(seq 300); do \(programs)/pg_isready -q -h \(folder) && break; sleep 0.1; done
            """
        try await connection.execute("COPY (SELECT 1) TO PROGRAM $sh$\(start)$sh$", deadline: .now + .seconds(60))
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(PasswordServer(folder: folder))) } catch { outcome = .failure(error) }
        let stop = "\(programs)/pg_ctl stop -D \(folder)/data -m immediate -s; rm -rf \(folder)"
        try await connection.execute("COPY (SELECT 1) TO PROGRAM $sh$\(stop)$sh$", deadline: .now + .seconds(60))
        await connection.close()
        try outcome.get()
    }

    func environment(password: String = PasswordServer.password) -> [String: String] {
        ["PGHOST": folder, "PGUSER": "postgres", "PGDATABASE": "postgres", "PGPASSWORD": password]
    }
}
