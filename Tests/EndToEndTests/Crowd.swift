import FakeProviders
import Testing

/// Many people with a device each and a notification each, some of the devices bad.
struct Crowd {
    /// How many people.
    let rows: Int
    /// Every so many-th of them has a bad device; nil for nobody.
    var badEvery: Int?
    /// How the tokens of bad devices begin, taken in turn.
    var badTokens: [String] = []
    /// Distinguishes crowds on one stage.
    var name = "c"
    /// Where the devices are registered.
    var environment = "sandbox"

    /// How many of them have a good device.
    var good: Int { rows - (badEvery.map { rows / $0 } ?? 0) }

    /// Registers the devices, then enqueues the notifications.
    func fill(_ stage: Stage) async throws {
        try await register(stage)
        try await enqueue(stage)
    }

    /// Registers the devices.
    func register(_ stage: Stage) async throws {
        let bad = badEvery.map { "n % \($0) = 0" } ?? "false"
        let tokens = badTokens.isEmpty ? "''" : badTokens.map { "'\($0)'" }.joined(separator: ", ")
        // Each registration takes a lock until its transaction ends, and a server has room for some thousands.
        for first in stride(from: 1, through: rows, by: 1000) {
            try await stage.run(
                """
                SELECT postbell.device_register('\(name)-' || n, 'phone', 'apns', '\(Stage.topic)',
                    CASE WHEN \(bad)
                        THEN rpad((ARRAY[\(tokens)])[1 + n / \(badEvery ?? 1) % \(max(1, badTokens.count))], 8, '0')
                        ELSE '0a0a0a0a' END || lpad(to_hex(n), 8, '0') || md5('\(name)') || repeat('0', 16),
                    environment => '\(environment)')
                FROM generate_series(\(first), \(min(rows, first + 999))) n
                """)
        }
        try await stage.run("ANALYZE postbell.devices")
    }

    /// Enqueues a notification for each, `rows` of them.
    func enqueue(_ stage: Stage) async throws {
        try await stage.run(
            """
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
            SELECT '\(name)-' || n, 'approval_requested', '\(name)-' || n,
                jsonb_build_object('approval_id', gen_random_uuid())::text
            FROM generate_series(1, \(rows)) n
            """)
    }

    /// Condition on `o`, the outbox, for the rows of good devices.
    private var isGood: String {
        let number = "substr(o.dedupe_key, \(name.count + 2))::int"
        return "o.dedupe_key LIKE '\(name)-%'" + (badEvery.map { " AND \(number) % \($0) <> 0" } ?? "")
    }

    /// Waits until no row of a good device is on its way any more.
    func waitUntilReached(_ stage: Stage, within limit: Duration = .seconds(60)) async throws {
        try await eventually("all good devices are reached", within: limit) {
            try await stage.texts(
                """
                SELECT count(*) FROM postbell.places p JOIN postbell.outbox o ON o.id = p.notification_id
                WHERE \(isGood)
                """) == ["0"]
        }
    }

    /// The fake has accepted each good push once, and no other.
    func expectExactlyOnce(_ stage: Stage) async throws {
        let identifiers = try await stage.texts("SELECT o.id FROM postbell.outbox o WHERE \(isGood)")
        let accepts = await stage.apns.accepts
        #expect(identifiers.count == good)
        let wrong = Dictionary(grouping: identifiers) { accepts[$0, default: 0] }.mapValues(\.count)
        #expect(wrong == [1: good], "how many were accepted how often")
        #expect(accepts.count == good)
    }

    /// The ledger of good devices: outcome, whether final, attempt, and how many rows of that.
    func outcomesOfGood(_ stage: Stage) async throws -> [String] {
        try await stage.texts(
            """
            SELECT concat_ws(' ', postbell.outcome_name(d.outcome), d.final, d.attempt, count(*))
            FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
            WHERE \(isGood) GROUP BY d.outcome, d.final, d.attempt ORDER BY 1
            """)
    }
}
