import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What a wrong configuration stopped is due at once when somebody has looked after it.
@Suite(.timeLimit(.minutes(5)))
struct RetryHeldTests {
    private static let refused = Outcome(.misconfigured, status: 400, reason: "BadDeviceToken")
    private static let down = Outcome(.retry, status: 503, reason: "ServiceUnavailable")
    private static let throttled = Outcome(.throttled, status: 429, reason: "TooManyRequests")

    /// Five rows: held, retried, throttled, released unsent for the length of a pause, and planned for later.
    private static func waiting(_ outbox: Outbox) async throws -> Worker {
        try await outbox.device()
        try await outbox.enqueue("held", "retried", "slow", "unsent")
        let worker = try await outbox.worker()
        let batch = try await worker.claimed()
        let keys = try await outbox.texts(
            "SELECT o.dedupe_key FROM postbell.leases l, unnest(l.ids) WITH ORDINALITY u(id, pos) "
                + "JOIN postbell.outbox o ON o.id = u.id ORDER BY u.pos")
        var flush = Settlement(batch: batch.identifier, route: batch.route, positions: 4)
        for (index, key) in keys.enumerated() {
            let position = Int16(index + 1)
            flush.leaving.append(position)
            flush.returns.append(.back(position, after: .seconds(2400)))
            let outcome: Outcome? = ["held": refused, "retried": down, "slow": throttled][key]
            guard let outcome else { continue }
            let dispatch = batch.dispatches[index]
            flush.ledger.append(
                batch.row(
                    dispatch, batch.targets[dispatch.targets.lowerBound], outcome: outcome, final: false,
                    retryAfter: .seconds(2400)))
        }
        #expect(try await worker.settle(flush).returned == 4)
        try await outbox.enqueue("planned", more: "not_before => now() + interval '40 min'")
        return worker
    }

    private static func retry(_ worker: Worker, limit: Int = 100) async throws -> Int64 {
        try await worker.query(RetryHeldStatement.command(on: [1], limit: limit)).int8(0, 0)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What is held and what went back unsent is claimed again, and nothing else`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            let worker = try await Self.waiting(outbox)
            #expect(try await worker.claim() == nil, "all of it waits")
            #expect(try await Self.retry(worker) == 2)
            #expect(try await Self.retry(worker) == 0, "what is due is left alone")
            let batch = try await worker.claimed()
            let claimed = try await outbox.texts(
                "SELECT o.dedupe_key FROM postbell.leases l JOIN postbell.outbox o ON o.id = ANY (l.ids) ORDER BY 1")
            #expect(claimed == ["held", "unsent"])
            #expect(batch.devices.allSatisfy { $0.count == 1 }, "the held target is among those to be sent to")
            #expect(batch.targets.allSatisfy { $0.spentAttempts == 0 })
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A row that somebody has locked is left, and the limit holds`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let worker = try await Self.waiting(outbox)
            let other = try await outbox.database.connect()
            try await other.execute("BEGIN")
            try await other.execute(
                "SELECT 1 FROM postbell.queue q JOIN postbell.outbox o ON o.id = q.notification_id "
                    + "WHERE o.dedupe_key = 'held' FOR UPDATE OF q")
            #expect(try await Self.retry(worker) == 1)
            try await other.execute("COMMIT")
            await other.close()
            #expect(try await Self.retry(worker, limit: 0) == 0)
            #expect(try await Self.retry(worker, limit: 1) == 1)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Rows of other routes go on waiting`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let worker = try await Self.waiting(outbox)
            let moved = try await worker.query(RetryHeldStatement.command(on: [2], limit: 100)).int8(0, 0)
            #expect(moved == 0)
            #expect(try await worker.claim() == nil)
        }
    }
}
