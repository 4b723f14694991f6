/// One step from an empty database to the schema that this program knows.
package struct Migration: Sendable, Equatable {
    /// Its number; migrations are applied in ascending order.
    package let version: Int
    /// What it is about, as its file's name says.
    package let name: String
    /// SHA-256 of the file's bytes in hex: an applied file must not change.
    package let checksum: String
    /// Its statements, without a transaction around them.
    package let sql: String
}

/// How a migration stands in a database.
package struct MigrationStatus: Sendable, Equatable {
    /// The states of a migration.
    package enum State: Sendable, Equatable {
        /// Not applied yet.
        case pending
        /// Applied, at the instant in PostgreSQL's text form.
        case applied(at: String)
        /// Applied, but from a file that was different then.
        case changed(at: String)
        /// Applied by a newer program: this one does not know it.
        case unknown(at: String)
    }

    /// Its number.
    package let version: Int
    /// What it is about.
    package let name: String
    /// How it stands.
    package let state: State
}

/// Why migrations were not applied.
package enum MigrationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// An applied file has changed since.
    case changed(version: Int, name: String)
    /// The database has migrations that this program does not know.
    case tooNew(version: Int)
    /// A migration failed and left no trace; `sqlState` is empty where no server answered.
    case failed(version: Int, name: String, sqlState: String, message: String)
    /// The database could not be asked.
    case unreachable(sqlState: String, message: String)

    package var description: String {
        switch self {
        case .changed(let version, let name):
            "migration \(version) (\(name)) was applied from another file: an applied migration never changes"
        case .tooNew(let version):
            "the database has migration \(version), which this program does not know: use a newer program"
        case .failed(let version, let name, let sqlState, let message):
            "migration \(version) (\(name)) failed and changed nothing: \(message)"
                + (sqlState.isEmpty ? "" : " (SQLSTATE \(sqlState))")
        case .unreachable(let sqlState, let message):
            message + (sqlState.isEmpty ? "" : " (SQLSTATE \(sqlState))")
        }
    }
}
