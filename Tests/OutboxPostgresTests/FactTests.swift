import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What ends a notification from outside: each fact is read by the claim, the re-check, the end of the wait for a
/// device and the sweep, and all come to the same end.
@Suite(.timeLimit(.minutes(5)))
struct FactTests {
    struct Fact: Sendable {
        let made: String
        let verdict: ClaimVerdict
        let reason: SettlementReason
        let end: String
    }

    /// Against notifications of subject s and thread t.
    static let facts = [
        Fact(
            made: "SELECT postbell.supersede('default', 's')", verdict: .superseded, reason: .superseded,
            end: "superseded superseded"),
        Fact(
            made: "SELECT postbell.sync('anna', seen => '{s}')", verdict: .seen, reason: .seen,
            end: "superseded seen"),
        Fact(
            made: "SELECT postbell.erase('default', 't')", verdict: .erased, reason: .erased,
            end: "cancelled erased"),
    ]

    static let cases = DatabaseServer.allCases.flatMap { server in facts.indices.map { (server, $0) } }

    private static let addressed = "subject => 's', thread => 't'"

    /// A database whose kind ends when its subject was seen.
    private static func on(
        _ server: DatabaseServer, audited: Bool = true, _ body: (Outbox) async throws -> Void
    ) async throws {
        try await Outbox.on(server, audited: audited) { outbox in
            try await outbox.run(
                """
                SELECT postbell.define_kind('note', 'template', '{"word": "slug?"}', '{"title": "Note"}',
                    wait_for_device => '0', ends_when_seen => true)
                """)
            try await body(outbox)
        }
    }

    @Test(arguments: cases)
    func `A claim answers a fact that came before it`(server: DatabaseServer, index: Int) async throws {
        let fact = Self.facts[index]
        try await Self.on(server) { outbox in
            try await outbox.device()
            try await outbox.device(tenant: "other")
            try await outbox.enqueue("a", more: Self.addressed)
            try await outbox.enqueue("b", more: "subject => 'other', thread => 'other'")
            try await outbox.run(fact.made)
            try await outbox.enqueue("c", more: Self.addressed)
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            #expect(batch.dispatches.map(\.verdict) == [fact.verdict, .send, .send])
            #expect(batch.devices == [[], [1], [1]])
            var flush = batch.flush(1, 2, 3)
            flush.ends = [batch.end(1)]
            _ = try await worker.settle(flush)
            #expect(try await outbox.places() == ["a \(fact.end)", "b dispatched", "c dispatched"])
        }
    }

    /// The fact is ordered by its clock reading, so a producer that commits later changes nothing.
    @Test(arguments: cases)
    func `A fact reaches what was enqueued before it and commits after it`(
        server: DatabaseServer, index: Int
    ) async throws {
        let fact = Self.facts[index]
        try await Self.on(server, audited: false) { outbox in
            try await outbox.device()
            try await outbox.enqueue("z", more: Self.addressed)
            let producer = try await outbox.database.connect(role: "postbell_producer")
            try await producer.execute(
                "BEGIN; SELECT postbell.enqueue('note', 'anna', 'a', \(Self.addressed))")
            try await outbox.run(fact.made)
            try await producer.execute("COMMIT")
            let batch = try await outbox.worker().claimed()
            #expect(batch.dispatches.map(\.verdict) == [fact.verdict, fact.verdict])
            await producer.close()
        }
    }

    @Test(arguments: cases)
    func `What the lease holder has in hand falls out at the re-check`(
        server: DatabaseServer, index: Int
    ) async throws {
        let fact = Self.facts[index]
        try await Self.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", more: Self.addressed)
            try await outbox.enqueue("b", more: "subject => 'other', thread => 'other'")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            #expect(try await worker.recheck(batch) == [nil, nil])
            try await outbox.run(fact.made)
            #expect(try await worker.recheck(batch) == [fact.reason, nil])
            var flush = batch.flush(1, 2)
            flush.ledger[0] = batch.row(
                batch.dispatches[0], batch.targets[0],
                outcome: Outcome(.skipped, reason: fact.reason.rawValue), final: true)
            flush.ends = [
                PositionEnd(
                    position: 1, status: fact.reason == .erased ? .cancelled : .superseded, reason: fact.reason,
                    wholeNotification: true)
            ]
            _ = try await worker.settle(flush)
            #expect(try await outbox.places() == ["a \(fact.end)", "b dispatched"])
        }
    }

    @Test(arguments: cases)
    func `The wait for a first device ends by a fact`(server: DatabaseServer, index: Int) async throws {
        let fact = Self.facts[index]
        try await Self.on(server) { outbox in
            try await outbox.enqueue("a", more: Self.addressed)
            try await outbox.enqueue("b", more: "subject => 'other', thread => 'other'")
            try await outbox.run(fact.made)
            #expect(try await outbox.worker().resolve() == 2)
            #expect(try await outbox.places() == ["a \(fact.end)", "b dispatched no_device"])
        }
    }

    /// Also on routes that nobody serves, and before the row is due.
    @Test(arguments: cases)
    func `The sweep ends what a fact is against, once`(server: DatabaseServer, index: Int) async throws {
        let fact = Self.facts[index]
        try await Self.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet", route: 2)
            try await outbox.enqueue("a", more: Self.addressed + ", not_before => now() + interval '1 h'")
            try await outbox.enqueue("b", more: "subject => 'other', thread => 'other'")
            try await outbox.run(fact.made)
            #expect(try await outbox.worker().sweep() == 2)
            #expect(try await outbox.places() == ["a \(fact.end)", "b queue"])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.settlements") == "1")
        }
    }

    // MARK: Waiting for nobody

    /// A back end in an open transaction holds up no statement of a worker (whose lock timeout is a second), and a
    /// worker in one holds up no back end.
    @Test(arguments: cases)
    func `Neither the worker nor who appends the fact waits`(server: DatabaseServer, index: Int) async throws {
        let fact = Self.facts[index]
        try await Self.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c", more: Self.addressed)
            let worker = try await outbox.worker()
            let held = try await worker.claimed(1)
            try await outbox.run("SET lock_timeout = '100 ms'; BEGIN; \(fact.made)")
            let seen = try await worker.claimed(1)
            #expect(seen.dispatches.map(\.verdict) == [.send], "not committed, not there")
            #expect(try await worker.recheck(held) == [nil])
            _ = try await worker.settle(held.flush(1))
            _ = try await worker.settle(seen.flush(1))
            try await outbox.run("COMMIT")
            try await worker.connection.execute("BEGIN")
            let last = try await worker.claimed(1)
            try await outbox.run(fact.made)
            try await worker.connection.execute("COMMIT")
            #expect(last.dispatches.map(\.verdict) == [fact.verdict])
            var flush = last.flush(1)
            flush.ends = [last.end(1)]
            _ = try await worker.settle(flush)
        }
    }

    // MARK: Erasure

    @Test(arguments: DatabaseServer.allCases)
    func `An erasure empties what open notifications of the thread say`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.device()
            let word = #"payload => '{"word": "tea"}'"#
            try await outbox.enqueue("done", "leased", more: "thread => 't', \(word)")
            let worker = try await outbox.worker()
            let done = try await worker.claimed(1)
            _ = try await worker.settle(done.flush(1))
            _ = try await worker.claimed(1)
            try await outbox.enqueue("queued", more: "thread => 't', \(word)")
            try await outbox.enqueue("foreign", more: "thread => 'u', \(word)")
            try await outbox.run("BEGIN; SELECT postbell.erase('default', 't'); ROLLBACK")
            let said = "SELECT dedupe_key || ' ' || payload FROM postbell.outbox WHERE payload <> '{}' ORDER BY 1"
            #expect(try await outbox.texts(said).count == 4)
            try await outbox.run("SELECT postbell.erase('default', 't')")
            #expect(
                try await outbox.texts(said) == [#"done {"word": "tea"}"#, #"foreign {"word": "tea"}"#])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A fact is about an id, and nobody reads it who appends it`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            let producer = try await outbox.database.connect(role: "postbell_producer")
            for (state, call) in [
                ("PB006", "erase('default', 'two words')"), ("PB006", "erase('default', NULL)"),
                ("PB006", "erase(NULL, 't')"), ("PB006", "supersede('default', 'two words')"),
            ] {
                #expect(await producer.refusal("SELECT postbell.\(call)") == state, "\(call)")
            }
            try await producer.execute("SELECT postbell.erase('default', 't')")
            #expect(await producer.refusal("SELECT count(*) FROM postbell.erasures") == "42501")
            await producer.close()
        }
    }
}

extension ClaimedBatch {
    /// How the core ends a position that was not wanted any more.
    func end(_ position: Int16) -> PositionEnd {
        let (status, reason): (SettlementStatus, SettlementReason) =
            switch dispatches[Int(position) - 1].verdict {
            case .superseded: (.superseded, .superseded)
            case .seen: (.superseded, .seen)
            case .erased, .orphan: (.cancelled, .erased)
            case .closed: (.cancelled, .cancelled)
            case .expired, .send: (.expired, .expired)
            }
        return PositionEnd(
            position: position, status: status, reason: reason,
            wholeNotification: status == .superseded || status == .cancelled)
    }
}
