import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The settle may be repeated at any time and never moves what is not its own.
@Suite(.timeLimit(.minutes(5)))
struct SettleTests {
    private static let retry = Outcome(.retry, status: 503, reason: "ServiceUnavailable")

    /// M1, the race that chaos alone does not find: the answer to a partial settle is lost, another worker claims the
    /// retry, the first one repeats its flush.
    @Test(arguments: DatabaseServer.allCases)
    func `A repeated partial settle moves nothing a second time`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c")
            let (first, second) = (try await outbox.worker(), try await outbox.worker())
            let batch = try await first.claimed()
            var flush = batch.flush(1, outcome: Self.retry, final: false, retryAfter: .zero)
            flush.returns = [.back(1)]
            #expect(try await first.settle(flush) == SettleReport(owned: true, ledgerRows: 1, returned: 1))
            #expect(try await second.claimed().dispatches.count == 1)
            // The lease still exists, for b and c are in it; but the bit of a is gone.
            #expect(try await first.settle(flush) == SettleReport(owned: true, ledgerRows: 0, returned: 0))
            #expect(try await outbox.texts("SELECT place FROM postbell.places") == ["lease", "lease", "lease"])
            #expect(try await outbox.ledger() == ["a 1 retry"])
        }
    }

    /// Their arrays end with the last row that has them.
    @Test(arguments: DatabaseServer.allCases)
    func `Reasons, waits and the provider's ids stay with their rows`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c", "d", "e")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            let good = Outcome(.delivered, status: 200)
            let outcomes = [
                good, Self.retry, good, Outcome(.delivered, status: 200, providerIdentifier: .text("own")), good,
            ]
            var flush = batch.flush(1, 2, 3, 4, 5)
            for (index, outcome) in outcomes.enumerated() {
                let (dispatch, target) = (batch.dispatches[index], batch.targets[index])
                flush.ledger[index] = batch.row(
                    dispatch, target, outcome: outcome, final: index != 1, retryAfter: index == 1 ? .zero : nil)
            }
            flush.returns = [.back(2)]
            #expect(try await worker.settle(flush) == SettleReport(owned: true, ledgerRows: 5, returned: 1))
            let rows = try await outbox.texts(
                """
                SELECT concat_ws(' ', o.dedupe_key, d.provider_status, d.reason, d.provider_id, d.retry_at IS NOT NULL)
                FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id ORDER BY 1
                """)
            #expect(rows == ["a 200 f", "b 503 ServiceUnavailable t", "c 200 f", "d 200 own f", "e 200 f"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A repeated settle of the whole lease changes nothing`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            var flush = batch.flush(1)
            flush.leaving = [1, 2]
            flush.ends = [PositionEnd(position: 2, status: .failed, reason: .ceiling, wholeNotification: false)]
            #expect(try await worker.settle(flush) == SettleReport(owned: true, ledgerRows: 1, returned: 0))
            let report = try await worker.settle(flush)
            #expect(report == SettleReport(owned: false, ledgerRows: 0, returned: 0))
            #expect(!report.isFenced)
            #expect(try await outbox.places() == ["a dispatched", "b failed ceiling"])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.settlements") == "1")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Results of a lease that was recovered are late and move nothing`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let (slow, other) = (try await outbox.worker(), try await outbox.worker())
            let batch = try await slow.claimed(lease: .microseconds(1))
            #expect(try await other.recover() == RecoveryReport(leases: 1, rows: 1, unknowns: 1, setAside: 0))
            let report = try await slow.settle(batch.flush(1))
            #expect(report.isFenced)
            #expect(try await outbox.ledger() == ["a 1 unknown", "a 1 delivered final late"])
            // The late row counts: nobody is left to be sent to, and the dispatch may end.
            let next = try await other.claimed(crashClass: .once)
            #expect(next.targets.isEmpty && next.dispatches[0].nobody == nil)
            _ = try await other.settle(next.flush(1))
            #expect(try await outbox.places() == ["a dispatched"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A lapsed lease that nobody recovered still settles`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(lease: .microseconds(1))
            #expect(try await worker.settle(batch.flush(1)).owned)
            #expect(try await outbox.ledger() == ["a 1 delivered final"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `The provider's own name is kept, be it a UUID or a text, unless it is the notification's`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let given = Identifier(high: 0x1111_1111_2222_4333, low: 0x8444_5555_5555_5555)
            let worker = try await outbox.worker()
            for name in [ProviderIdentifier.uuid(given), .text("0:15%31bd")] {
                try await outbox.enqueue(name.description)
                let outcome = Outcome(.delivered, status: 200, providerIdentifier: name)
                _ = try await worker.settle(try await worker.claimed().flush(1, outcome: outcome))
            }
            try await outbox.enqueue("own")
            let own = try await worker.claimed()
            let outcome = Outcome(.delivered, providerIdentifier: .uuid(own.dispatches[0].notification))
            _ = try await worker.settle(own.flush(1, outcome: outcome))
            #expect(
                try await outbox.texts("SELECT provider_id FROM postbell.ledger ORDER BY id")
                    == [given.description, "0:15%31bd", "null"])
        }
    }

    /// M3: a batch is named by the worker, so an old flush never meets a new lease of the same owner.
    @Test(arguments: DatabaseServer.allCases)
    func `An old flush never passes the fence of a newer lease`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let old = try await worker.claimed()
            #expect(try await worker.adopt(old.identifier) == 1)
            _ = try await worker.claimed()
            var flush = old.flush(1)
            flush.returns = [.back(1)]
            #expect(try await worker.settle(flush) == SettleReport(owned: false, ledgerRows: 1, returned: 0))
            #expect(try await outbox.texts("SELECT place FROM postbell.places") == ["lease"])
        }
    }

    /// M4 and M5: neither a closing nor a device that somebody holds in an open transaction delays the worker.
    @Test(arguments: DatabaseServer.allCases)
    func `A settle waits for no producer and no back end`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let identifiers = try await outbox.enqueue("a", more: "subject => 's'")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            try await outbox.run(
                """
                BEGIN;
                SELECT postbell.supersede('default', 's');
                INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
                VALUES ('\(identifiers[0])', 1, 'cancelled', 'cancelled');
                UPDATE postbell.devices SET token = 'moved'
                """)
            try await worker.connection.execute("SET lock_timeout = '1ms'")
            var flush = batch.flush(1, outcome: Outcome(.rejected, status: 400))
            flush.ends = [PositionEnd(position: 1, status: .failed, reason: .rejected, wholeNotification: false)]
            #expect(try await worker.settle(flush).owned)
            #expect(try await worker.apply(batch.effect(.tokenInvalid)) == [0], "locked, to be tried again")
            try await outbox.run("COMMIT")
            // S10: a closing that overlaps the last settle wins.
            #expect(try await outbox.places() == ["a cancelled cancelled"])
        }
    }

    /// M6: the key is the id alone, so a repeat across midnight finds its row, in whatever day's partition.
    @Test(arguments: DatabaseServer.allCases)
    func `A repeat across midnight adds nothing`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            let midnight = Timestamp(
                microseconds: batch.claimedAt.microseconds / 86_400_000_000 * 86_400_000_000)
            var random = SystemRandomNumberGenerator()
            var flush = batch.flush(1)
            for (index, instant) in [midnight + .milliseconds(-1), midnight].enumerated() {
                let row = flush.ledger[index]
                flush.ledger[index] = LedgerRow(
                    identifier: .timeOrdered(at: instant, using: &random), notification: row.notification,
                    tenant: row.tenant, device: row.device, tokenSequence: row.tokenSequence, attempt: row.attempt,
                    position: row.position, outcome: row.outcome, isFinal: true, retryAfter: nil, attemptedAt: instant,
                    answeredAt: nil)
            }
            #expect(try await worker.settle(flush).ledgerRows == 2)
            #expect(try await worker.settle(flush).ledgerRows == 0)
            #expect(
                try await outbox.value("SELECT count(DISTINCT tableoid) FROM postbell.deliveries") == "2",
                "both days' partitions are there")
        }
    }
}
