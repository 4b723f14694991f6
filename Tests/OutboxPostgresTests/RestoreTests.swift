import Foundation
import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// A dump of a database in the middle of its work, and what is made of it.
@Suite(.timeLimit(.minutes(5)))
struct RestoreTests {
    @Test(arguments: DatabaseServer.allCases)
    func `A restored dump is the same schema with the same work, and workers go on with it`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.life(of: outbox)
            let (before, places, ledger) = (
                try await outbox.admin.schemaText(), try await outbox.places(), try await outbox.ledger()
            )
            #expect(
                places == [
                    "delivered dispatched", "held lease", "new queue", "over superseded superseded", "tried queue",
                ])
            try await Self.restored(outbox.database) { copy in
                #expect(try await SchemaRevision.read(from: copy.admin) == .current)
                let after = try await copy.admin.schemaText()
                #expect(after.filter { !before.contains($0) } == [])
                #expect(before.filter { !after.contains($0) } == [])
                #expect(try await copy.places() == places)
                #expect(try await copy.ledger() == ledger)
                #expect(try await copy.faults() == ["not_recovered"], "its lease lapsed before the dump")
                try await Self.goOn(in: copy)
                #expect(try await copy.faults() == [])
            }
            // The copy is another database: nothing of it came back here.
            #expect(try await outbox.places() == places)
            let worker = try await outbox.worker()
            #expect(try await worker.recover().rows == 1)
        }
    }

    /// One notification in each place, two days of the ledger, a policy.
    private static func life(of outbox: Outbox) async throws {
        try await outbox.device()
        let worker = try await outbox.worker()
        try await RetentionTests.over(["delivered"], outbox, worker)
        try await outbox.enqueue("tried")
        let tried = try await worker.claimed()
        var flush = tried.flush(1, outcome: Outcome(.retry, status: 500), final: false)
        flush.returns = [.back(1)]
        _ = try await worker.settle(flush)
        try await outbox.age(days: 2)
        try await outbox.run("UPDATE postbell.outbox SET expires_at = now() + interval '1 day'")
        try await outbox.run("UPDATE postbell.queue SET due_at = now() + interval '1 h'")
        try await outbox.enqueue("over", more: "subject => 's'")
        try await outbox.run("SELECT postbell.supersede('default', 's')")
        #expect(try await worker.sweep() == 1)
        try await outbox.enqueue("held")
        _ = try await worker.claimed(lease: .microseconds(1))
        try await outbox.enqueue("new")
        try await outbox.run("UPDATE postbell.queue SET due_at = now()")
        try await outbox.keep(days: 1)
    }

    /// Everything that a worker, a producer and retention do next.
    private static func goOn(in copy: Outbox) async throws {
        let worker = try await copy.worker()
        #expect(try await worker.recover().rows == 1)
        #expect(try await copy.enqueue("delivered") == ["null"], "its key counts as before")
        try await copy.enqueue("newest")
        try await copy.run("UPDATE postbell.queue SET due_at = now()")
        for _ in 1...4 {
            // What its holder died of is claimed apart.
            var batch = try await worker.claim(1)
            if batch == nil { batch = try await worker.claim(1, crashClass: .once) }
            let claimed = try #require(batch)
            _ = try await worker.settle(claimed.flush(1))
        }
        #expect(
            try await copy.places() == [
                "delivered dispatched", "held dispatched", "new dispatched", "newest dispatched",
                "over superseded superseded", "tried dispatched",
            ])
        #expect(try await copy.retain() == 1, "the policies came along")
        #expect(try await copy.kept() == ["held", "new", "newest", "over", "tried"])
        #expect(try await copy.value("SELECT postbell.drop_ledger_day() IS NOT NULL") == "t")
        #expect(try await copy.value("SELECT postbell.create_partitions(9) >= 6") == "t")
    }

    private static func restored(
        _ database: TemporaryDatabase, _ body: (Outbox) async throws -> Void
    ) async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "\(database.name).dump")
        defer { try? FileManager.default.removeItem(at: file) }
        let server = database.server
        try await server.run(
            "pg_dump",
            [
                "--format=custom", "--file=\(file.path)",
                "--dbname=\(try server.connectionString()) dbname=\(database.name)",
            ])
        try await TemporaryDatabase.empty(on: server) { restored in
            try await server.run(
                "pg_restore",
                ["--exit-on-error", "--dbname=\(try server.connectionString()) dbname=\(restored.name)", file.path])
            let copy = Outbox(database: restored, admin: try await restored.connect())
            try await body(copy)
            await copy.admin.close()
        }
    }
}
