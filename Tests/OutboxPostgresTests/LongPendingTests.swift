import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The watch of what has been due for long, whoever serves it (spec 3.11).
@Suite(.timeLimit(.minutes(5)))
struct LongPendingTests {
    private static func with(
        _ server: DatabaseServer, _ body: (Outbox, PostgresOutboxStore) async throws -> Void
    ) async throws {
        try await Outbox.on(server, audited: false) { outbox in
            let store = try PostgresOutboxStore(
                outbox.database.configuration(role: "postbell_dispatcher", worker: true), on: DatabaseServer.loop,
                owner: Worker.identifier(), name: "watching")
            await store.start()
            let outcome: Result<Void, any Error>
            do {
                _ = try await store.register(lanes: [LaneReport(name: "lane", routes: [1])], hooks: [], version: "1")
                outcome = .success(try await body(outbox, store))
            } catch { outcome = .failure(error) }
            await store.stop()
            try outcome.get()
        }
    }

    private static func age(_ key: String, by interval: String, in outbox: Outbox) async throws {
        try await outbox.run(
            """
            UPDATE postbell.queue SET due_at = due_at - interval '\(interval)'
            WHERE notification_id = (SELECT id FROM postbell.outbox WHERE dedupe_key = '\(key)')
            """)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Rows due for long are named oldest first, also of routes that nobody serves`(
        server: DatabaseServer
    ) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.device("tablet", of: "berta", route: 2)
            try await outbox.enqueue("young", "old")
            try await outbox.enqueue("oldest", to: "berta")
            try await Self.age("old", by: "10 min", in: outbox)
            try await Self.age("oldest", by: "20 min", in: outbox)
            let found = try await store.longPending(on: [0, 1, 2], olderThan: .seconds(300), limit: 20)
            #expect(found.map(\.route) == [2, 1])
            #expect(found.map(\.kind) == ["note", "note"] && found.allSatisfy { $0.claimant == nil })
            #expect(found[0].age >= .seconds(1200) && found[1].age < .seconds(1200))
            let one = try await store.longPending(on: [0, 1, 2], olderThan: .seconds(300), limit: 1)
            #expect(one == [found[0]] || one.map(\.notification) == [found[0].notification])
            #expect(try await store.unservedRoutes() == [2], "a worker serves the first alone")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Rows on a lease that is held for long are named with their worker`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.enqueue("held")
            let work = try await store.waitingWork(on: [1])
            let request = ClaimRequest(
                batch: Worker.identifier(), route: 1, crashClass: .clean,
                credits: work.shares.map { ShareCredit(share: $0.share, rows: 10, mark: .start) },
                lease: .seconds(3600), targetsPerRow: 10)
            _ = try await store.claim(request)
            #expect(try await store.longPending(on: [1], olderThan: .seconds(300), limit: 20).isEmpty)
            try await outbox.run("UPDATE postbell.leases SET claimed_at = claimed_at - interval '10 min'")
            let found = try await store.longPending(on: [1], olderThan: .seconds(300), limit: 20)
            #expect(found.map(\.claimant) == ["watching"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Suspects are named too, and of a fleet one worker answers`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.enqueue("suspect")
            try await Self.age("suspect", by: "10 min", in: outbox)
            try await outbox.run("UPDATE postbell.queue SET crashes = 4")
            #expect(try await store.longPending(on: [1], olderThan: .seconds(300), limit: 20).count == 1)
            try await outbox.run(
                """
                INSERT INTO postbell.workers (worker_no, owner, name, version)
                OVERRIDING SYSTEM VALUE VALUES (-1, gen_random_uuid(), 'elder', '1')
                """)
            #expect(try await store.longPending(on: [1], olderThan: .seconds(300), limit: 20).isEmpty)
            try await outbox.run("UPDATE postbell.workers SET stopped_at = now() WHERE name = 'elder'")
            #expect(try await store.longPending(on: [1], olderThan: .seconds(300), limit: 20).count == 1)
        }
    }

    /// The plan must not walk the queue, however long it is.
    @Test(arguments: DatabaseServer.allCases)
    func `A look reads a few rows of a long queue`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.run(
                """
                INSERT INTO postbell.outbox (principal_id, kind, dedupe_key)
                SELECT 'anna', 'note', 'row-' || n FROM generate_series(1, 20000) n;
                UPDATE postbell.queue SET due_at = due_at - interval '1 h'
                """)
            try await outbox.run("VACUUM ANALYZE postbell.queue")
            #expect(try await store.longPending(on: [0, 1, 2], olderThan: .seconds(300), limit: 20).count == 20)
            let worker = try await outbox.worker()
            try await worker.connection.execute("PREPARE planned AS \(LongPendingStatement.text)")
            let number = try await outbox.value("SELECT worker_no FROM postbell.workers")
            let plan = try await worker.connection.texts(
                """
                EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off)
                EXECUTE planned('{1}', '{0}', '{0}', '{1}', '5 min', 20, \(number), '{1}')
                """)
            let text = plan.joined(separator: "\n")
            #expect(plan.contains { $0.contains("queue_due") && $0.contains("rows=20") }, "\(text)")
            #expect(!text.contains("Seq Scan on queue") && !text.contains("Seq Scan on outbox"), "\(text)")
        }
    }
}
