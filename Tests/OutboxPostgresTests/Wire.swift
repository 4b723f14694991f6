import APNS
import FCM
import HTTP2
import OutboxCore
import Postgres
import Support

@testable import OutboxPostgres

/// A notification from its insert to the bytes that each provider would be sent.
struct Wire {
    /// Bodies, or the reason why there is none; the notification's id is `ID` in them.
    let apns: String
    let fcm: String
    /// Headers on Apple's side, in the order in which they stand; without what is a secret or as random as `apns-id`,
    /// and `apns-expiration` counted from when the notification is due.
    let apnsHeaders: [(name: String, value: String)]

    /// Priority on Apple's side.
    var apnsPriority: String? { apnsHeaders.first { $0.name == "apns-priority" }?.value }

    private static let appleToken = String(repeating: "ab", count: 32)
    private static let googleToken = "cXyzAbcdEFGhijKLmnopqr:APA91b" + String(repeating: "Gh-7_x", count: 22)

    /// Enqueues for a principal with one device of each provider, claims as the dispatcher, and encodes by the catalog
    /// as a worker reads it, at the instant when it is due. `values` are columns of the insert with their values as
    /// SQL; it is due at once, and urgent. `key` is its dedupe key, as SQL.
    static func of(
        _ kind: String, _ values: KeyValuePairs<String, String>, key: String = "gen_random_uuid()", in outbox: Outbox,
        beforeClaim: () async throws -> Void = {}
    ) async throws -> Wire {
        try await outbox.run(
            """
            SELECT postbell.device_register('wire', 'phone', 'apns', 'app.one', '\(appleToken)', 'production');
            SELECT postbell.device_register('wire', 'tablet', 'fcm', 'app.two', '\(googleToken)')
            """)
        let columns = values.map { ", " + $0.key }.joined()
        let given = values.map { ", " + $0.value }.joined()
        let id = try await outbox.value(
            """
            INSERT INTO postbell.outbox (kind, principal_id, dedupe_key, urgency, not_before\(columns))
            SELECT '\(kind)', 'wire', \(key), 'urgent', now()\(given)
            RETURNING id
            """)
        let due = try await outbox.value(
            "SELECT (extract(epoch FROM planned_at) * 1000000)::bigint FROM postbell.outbox WHERE id = '\(id)'")
        let now = Timestamp(microseconds: Int64(due) ?? 0)
        try await beforeClaim()
        let worker = try await outbox.worker()
        let kinds = try CatalogAnswer.kinds(
            await worker.query(PostgresCommand(CatalogStatement.kinds, PostgresParameters())))
        let known = Dictionary(uniqueKeysWithValues: kinds.map { ($0.number, $0) })
        let apple = try await worker.claimed(route: 1)
        let google = try await worker.claimed(route: 2)
        var toApple = APNSRequestEncoder(topics: ["app.one"])
        var toGoogle = FCMRequestEncoder(project: "project-1")
        let sent = try encode(
            apple, known, now, "apns", "app.one", begin: { toApple.begin($0, text: $1, into: &$2) },
            add: { toApple.add($0, tag: 0, text: $1, into: &$2) })
        let other = try encode(
            google, known, now, "fcm", "app.two", begin: { toGoogle.begin($0, text: $1, into: &$2) },
            add: { toGoogle.add($0, tag: 0, text: $1, into: &$2) })
        for batch in [apple, google] {
            _ = try await worker.settle(batch.flush(1))
        }
        return Wire(
            apns: sent.body.replacing(id, with: "ID"), fcm: other.body.replacing(id, with: "ID"),
            apnsHeaders: sent.headers)
    }

    private static func encode(
        _ batch: ClaimedBatch, _ kinds: [KindNumber: Kind], _ now: Timestamp, _ provider: String, _ app: String,
        begin: (OutgoingPush, [UInt8], inout HTTPRequestBatch) -> Outcome?,
        add: (ClaimedTarget, [UInt8], inout HTTPRequestBatch) -> Outcome?
    ) throws -> (body: String, headers: [(name: String, value: String)]) {
        guard let dispatch = batch.dispatches.first, let kind = kinds[dispatch.kind] else {
            throw TestSetupError("the claim brought no notification of a known kind")
        }
        var requests = HTTPRequestBatch()
        let route = Route(number: batch.route, provider: provider, environment: "", app: app)
        let push = OutgoingPush(dispatch: dispatch, kind: kind, route: route, now: now)
        if let refusal = begin(push, batch.text, &requests) ?? add(batch.targets[0], batch.text, &requests) {
            return (refusal.reason, [])
        }
        let request = requests.requests[0]
        var headers = requests.sharedHeaders[Int(request.shared)].filter { !$0.isSensitive && !$0.value.isEmpty }
            .map { (name: $0.name, value: $0.value) }
        for index in 0..<request.fieldCount {
            let field = request.fields[index]
            let value = String(decoding: requests.bytes[field.value.indices], as: UTF8.self)
            switch "\(field.name.text)" {
            case "apns-id": break
            case "apns-expiration":
                let life = (Int64(value) ?? 0) - now.secondsRoundedUp
                headers.append(("apns-expiration", value == "0" ? value : "\(life) seconds after it is due"))
            case let name: headers.append((name, value))
            }
        }
        return (String(decoding: requests.bytes[request.body.indices], as: UTF8.self), headers)
    }
}
