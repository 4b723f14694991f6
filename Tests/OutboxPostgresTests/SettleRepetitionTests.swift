import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// A flush whose positions are all still open is written without a look for rows that are there already; every other
/// one is taken for a repetition.
@Suite(.timeLimit(.minutes(5)))
struct SettleRepetitionTests {
    /// What happens to the first of two sessions that write one flush at the same time.
    enum First: String, CaseIterable {
        case commits = "COMMIT"
        case rollsBack = "ROLLBACK"
    }

    private static let cases = DatabaseServer.allCases.flatMap { server in
        First.allCases.flatMap { first in [(server, first, false), (server, first, true)] }
    }

    /// A session is given up by the worker, its statement goes on in the server, and the repetition meets it there.
    @Test(arguments: cases)
    func `A repetition that meets the first one waits for it and adds what is missing`(
        server: DatabaseServer, first: First, ofAll: Bool
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            let flush = ofAll ? batch.flush(1, 2, 3) : batch.flush(1, 2)
            let again = Worker(
                connection: try await outbox.database.connect(role: "postbell_dispatcher", worker: true),
                owner: worker.owner)
            try await worker.connection.execute("BEGIN")
            let rows = flush.ledger.count
            #expect(try await worker.settle(flush) == SettleReport(owned: true, ledgerRows: rows, returned: 0))
            async let repeated = again.settle(flush)
            try await outbox.admin.expect(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
                "1")
            try await worker.connection.execute(first.rawValue)
            let report = try await repeated
            switch first {
            case .commits: #expect(report == SettleReport(owned: !ofAll, ledgerRows: 0, returned: 0))
            case .rollsBack: #expect(report == SettleReport(owned: true, ledgerRows: rows, returned: 0))
            }
            let ledger = ["a 1 delivered final", "b 1 delivered final", "c 1 delivered final"]
            #expect(try await outbox.ledger() == Array(ledger[..<rows]))
            #expect(try await outbox.value("SELECT count(*) FROM postbell.places") == "\(3 - rows)")
            await again.connection.close()
        }
    }

    /// A value was refused, the rows were written by halves, and the connection broke before their positions left.
    @Test(arguments: DatabaseServer.allCases)
    func `Rows that came without their positions are not in the way of the whole flush`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c")
            let store = try PostgresOutboxStore(
                outbox.database.configuration(role: "postbell_dispatcher", worker: true), on: DatabaseServer.loop,
                owner: Worker.identifier(), name: "test")
            await store.start()
            let request = ClaimRequest(
                batch: Worker.identifier(), route: 1, crashClass: .clean,
                credits: [ShareCredit(share: Share(urgency: 0, tenant: 1), rows: 10, mark: .start)],
                lease: .seconds(30), targetsPerRow: 10)
            let batch = try #require(try await store.claim(request))
            let flush = batch.flush(1, 2, 3)
            let half = flush.part(ledger: flush.ledger[..<2], leaving: [])
            #expect(try await store.settle(half) == SettleReport(owned: true, ledgerRows: 2, returned: 0))
            #expect(try await store.settle(flush) == SettleReport(owned: true, ledgerRows: 1, returned: 0))
            #expect(
                try await outbox.ledger() == ["a 1 delivered final", "b 1 delivered final", "c 1 delivered final"])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.places") == "0")
            await store.stop()
        }
    }

    /// A flush that grew after its first part was written brings that part once more.
    @Test(arguments: DatabaseServer.allCases)
    func `A flush of which a part was written adds the rest`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c")
            let worker = try await outbox.worker()
            let flush = try await worker.claimed().flush(1, 2, 3)
            let part = flush.part(ledger: flush.ledger[..<1], leaving: flush.leaving[..<1])
            #expect(try await worker.settle(part) == SettleReport(owned: true, ledgerRows: 1, returned: 0))
            #expect(try await worker.settle(flush) == SettleReport(owned: true, ledgerRows: 2, returned: 0))
            #expect(
                try await outbox.ledger() == ["a 1 delivered final", "b 1 delivered final", "c 1 delivered final"])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.places") == "0")
        }
    }
}
