package import Postgres

/// Whether a worker may run on a database's schema: only on exactly the one that it knows.
package enum SchemaRevision: Sendable, Equatable {
    /// What this program was made for.
    case current
    /// Migrations are missing; the highest one applied (0: none).
    case tooOld(Int)
    /// Migrations were applied that this program does not know; the highest one.
    case tooNew(Int)
    /// A migration was applied from another file than the one known here.
    case changed(Int)

    /// The revision of this program.
    package static let expected = Migration.all.last?.version ?? 0

    /// Reads the revision of a database through a session that may read `postbell.schema_migrations`.
    package static func read(from connection: PostgresConnection) async throws(MigrationError) -> SchemaRevision {
        judge(try await MigrationRunner(connection).status())
    }

    /// Judges how the migrations stand.
    package static func judge(_ statuses: [MigrationStatus]) -> SchemaRevision {
        var highest = 0
        var isComplete = true
        for status in statuses {
            switch status.state {
            case .pending: isComplete = false
            case .applied: highest = max(highest, status.version)
            case .changed: return .changed(status.version)
            case .unknown: return .tooNew(statuses.map(\.version).max() ?? status.version)
            }
        }
        return isComplete ? .current : .tooOld(highest)
    }
}
