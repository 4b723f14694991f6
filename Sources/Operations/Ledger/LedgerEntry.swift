import OutboxCore
import Postgres

/// One row of the ledger in words: a request that left, or a target that was skipped. No token, only its fingerprint.
struct LedgerEntry: Equatable, Sendable {
    var id: Identifier
    var tenant: String?
    var notification: Identifier
    /// Nil, like kind and key, when the notification itself is gone.
    var principal: String?
    var kind: String?
    var dedupeKey: String?
    var device: Identifier?
    var deviceName: String?
    var deviceKind: String?
    var provider: String?
    var environment: String?
    var topic: String?
    /// The route's number.
    var routeNumber: Int
    var attempt: Int
    var outcome: String
    /// Whether nothing more happens to this target.
    var isFinal: Bool
    /// Whether it was written when its lease was no longer the worker's.
    var isLate: Bool
    var retryAt: Timestamp?
    var providerStatus: Int?
    /// The provider's; of a skipped target ours.
    var reason: String?
    var providerIdentifier: String?
    var fingerprint: String?
    var worker: String?
    /// First byte; nil where nobody lives who knows.
    var attemptedAt: Timestamp?
    var answeredAt: Timestamp?

    /// When it was, as nearly as is known: its id is time-ordered.
    var instant: Timestamp { attemptedAt ?? Timestamp(microseconds: Int64(id.high >> 16) * 1000) }

    /// How long the provider took.
    var duration: Duration? {
        guard let attemptedAt, let answeredAt else { return nil }
        return answeredAt - attemptedAt
    }

    /// What was answered: status and reason.
    var answer: String {
        [providerStatus.map(String.init), reason].compactMap { $0 }.joined(separator: " ")
    }

    /// The device as people know it.
    var deviceTitle: String {
        deviceName ?? deviceKind ?? device.map { String($0.description.prefix(8)) } ?? "-"
    }
}

extension LedgerEntry {
    /// Reads a row of `LedgerStatement`.
    init(_ row: inout RowReader) throws(PostgresError) {
        id = try row.identifier()
        tenant = try row.textOrNil()
        notification = try row.identifier()
        principal = try row.textOrNil()
        kind = try row.textOrNil()
        dedupeKey = try row.textOrNil()
        device = try row.identifierOrNil()
        deviceName = try row.textOrNil()
        deviceKind = try row.textOrNil()
        provider = try row.textOrNil()
        environment = try row.textOrNil()
        topic = try row.textOrNil()
        routeNumber = try row.int2()
        attempt = try row.int2()
        outcome = try row.text()
        isFinal = try row.bool()
        isLate = try row.bool()
        retryAt = try row.instantOrNil()
        providerStatus = try row.int2OrNil()
        reason = try row.textOrNil()
        providerIdentifier = try row.textOrNil()
        fingerprint = try row.textOrNil()
        worker = try row.textOrNil()
        attemptedAt = try row.instantOrNil()
        answeredAt = try row.instantOrNil()
    }

    /// What follows from it, for tables.
    var consequence: String {
        if isFinal { return isLate ? "final, late" : "final" }
        guard let retryAt else { return isLate ? "late" : "" }
        return "again from \(TimeText.absolute(retryAt).dropFirst(11).dropLast(3))"
    }

    /// All of it, for programs. The names are documented and stay.
    var json: JSONText { .object(fields) }

    /// The same, with whether it decided about its device.
    func json(decides: Bool) -> JSONText { .object(fields + [("decides", .bool(decides))]) }

    private var fields: [(String, JSONText)] {
        [
            ("id", .identifier(id)), ("tenant_id", .string(tenant)), ("notification_id", .identifier(notification)),
            ("principal_id", .string(principal)), ("kind", .string(kind)), ("dedupe_key", .string(dedupeKey)),
            ("device_id", .identifier(device)), ("device_name", .string(deviceName)),
            ("device_kind", .string(deviceKind)), ("provider", .string(provider)),
            ("environment", .string(environment)), ("topic", .string(topic)), ("attempt", .int(attempt)),
            ("outcome", .string(outcome)), ("final", .bool(isFinal)), ("late", .bool(isLate)),
            ("retry_at", .instant(retryAt)), ("provider_status", .int(providerStatus)), ("reason", .string(reason)),
            ("provider_id", .string(providerIdentifier)), ("token_fingerprint", .string(fingerprint)),
            ("worker", .string(worker)), ("attempted_at", .instant(attemptedAt)),
            ("answered_at", .instant(answeredAt)), ("took_us", .int(duration.map { Int($0.wholeMicroseconds) })),
        ]
    }
}
