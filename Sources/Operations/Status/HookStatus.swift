import OutboxCore
import Postgres

/// A kind of which a live worker sends nothing, because a hook of it fails.
struct HookStatus: Equatable, Sendable {
    let kind: String
    /// The worker's name.
    let worker: String
    /// What the hook fails by.
    let reason: String
    let since: Timestamp
    /// When it is asked again.
    let until: Timestamp
}

extension HookStatus {
    /// Reads the columns of `postbell.hook_health`.
    init(_ row: inout RowReader) throws(PostgresError) {
        kind = try row.text()
        worker = try row.text()
        reason = try row.text()
        since = try row.instant()
        until = try row.instant()
    }

    var json: JSONText {
        .object([
            ("kind", .string(kind)), ("worker", .string(worker)), ("reason", .string(reason)),
            ("since", .instant(since)), ("until", .instant(until)),
        ])
    }
}
