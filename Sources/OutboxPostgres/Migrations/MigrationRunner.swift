package import Postgres

/// Brings a database's schema up to date: each migration in a transaction of its own, together with its record.
///
/// Several may run at once; they wait for one another and the later ones find nothing to do. Forward only.
package struct MigrationRunner: Sendable {
    private let connection: PostgresConnection
    private let migrations: [Migration]

    /// Longest time that one migration may take, waiting for its locks included.
    private static let deadline = Duration.seconds(600)
    /// First key of the advisory lock that runners hold; the second is the database's own.
    private static let lock = "pg_catalog.hashtextextended('postbell.migrate', 0)"

    /// A runner for a session whose role may create the schema and its roles.
    package init(_ connection: PostgresConnection, migrations: [Migration] = Migration.all) {
        self.connection = connection
        self.migrations = migrations
    }

    /// How every migration stands, known and unknown ones, in ascending order. Changes nothing.
    package func status() async throws(MigrationError) -> [MigrationStatus] {
        let applied = try await applied()
        let versions = Set(migrations.map(\.version)).union(applied.keys).sorted()
        return versions.map { version in
            let known = migrations.first { $0.version == version }
            guard let record = applied[version] else {
                return MigrationStatus(version: version, name: known?.name ?? "", state: .pending)
            }
            guard let known else {
                return MigrationStatus(version: version, name: record.name, state: .unknown(at: record.at))
            }
            let isSame = record.checksum == known.checksum
            return MigrationStatus(
                version: version, name: known.name, state: isSame ? .applied(at: record.at) : .changed(at: record.at))
        }
    }

    /// Migrations that `apply` would apply. Throws where it would refuse. Changes nothing.
    package func pending() async throws(MigrationError) -> [Migration] {
        let statuses = try await status()
        for status in statuses {
            switch status.state {
            case .changed: throw .changed(version: status.version, name: status.name)
            case .unknown: throw .tooNew(version: status.version)
            case .pending, .applied: continue
            }
        }
        return migrations.filter { migration in
            statuses.contains { $0.version == migration.version && $0.state == .pending }
        }
    }

    /// Applies what is pending, and tells of each that was applied. A failed one leaves no trace, and the ones before
    /// it stay. Answers what was applied.
    @discardableResult
    package func apply(
        _ applied: @Sendable (Migration) -> Void = { _ in }
    ) async throws(MigrationError) -> [Migration] {
        try await ask("SELECT pg_catalog.pg_advisory_lock(\(Self.lock))")
        let outcome: Result<[Migration], MigrationError>
        do { outcome = .success(try await applyPending(applied)) } catch { outcome = .failure(error) }
        // The lock dies with the session at the latest.
        _ = try? await connection.execute("SELECT pg_catalog.pg_advisory_unlock(\(Self.lock))", named: "unlock")
        return try outcome.get()
    }

    private func applyPending(
        _ applied: @Sendable (Migration) -> Void
    ) async throws(MigrationError) -> [Migration] {
        let todo = try await pending()
        for migration in todo {
            let record = """
                INSERT INTO postbell.schema_migrations (version, name, checksum)
                VALUES (\(migration.version), '\(migration.name)', '\(migration.checksum)');
                """
            do {
                try await connection.execute(
                    "BEGIN; SET LOCAL TimeZone = 'UTC';\n\(migration.sql)\n\(record)\nCOMMIT", named: "migrate",
                    deadline: .now + Self.deadline)
            } catch {
                _ = try? await connection.execute("ROLLBACK", named: "rollback")
                throw .failed(
                    version: migration.version, name: migration.name, sqlState: error.sqlState?.code ?? "",
                    message: error.message)
            }
            applied(migration)
        }
        return todo
    }

    // MARK: What is applied

    private struct Record {
        let name: String
        let checksum: String
        let at: String
    }

    private func applied() async throws(MigrationError) -> [Int: Record] {
        let present = try await ask("SELECT pg_catalog.to_regclass('postbell.schema_migrations') IS NOT NULL")
        do {
            guard try present.text(0, 0) == "t" else { return [:] }
            let rows = try await ask(
                """
                SELECT version, name, checksum, pg_catalog.date_trunc('second', applied_at)
                FROM postbell.schema_migrations
                """)
            var records: [Int: Record] = [:]
            for row in 0..<rows.rowCount {
                guard let version = Int(try rows.text(row, 0)) else { continue }
                records[version] = Record(
                    name: try rows.text(row, 1), checksum: try rows.text(row, 2), at: try rows.text(row, 3))
            }
            return records
        } catch let error as PostgresError {
            throw .unreachable(sqlState: error.sqlState?.code ?? "", message: error.message)
        } catch let error as MigrationError {
            throw error
        } catch {
            throw .unreachable(sqlState: "", message: "\(error)")
        }
    }

    @discardableResult
    private func ask(_ sql: String) async throws(MigrationError) -> PostgresResult {
        do {
            return try await connection.execute(sql, named: "migrate", deadline: .now + Self.deadline)
        } catch {
            throw .unreachable(sqlState: error.sqlState?.code ?? "", message: error.message)
        }
    }
}
