import OutboxCore
import OutboxPostgres
import Postgres
package import Support

/// A subject is superseded while the notification about it is still in its producer's open transaction, or at the
/// instant at which that commits. It must not be sent: neither may the claim let it through, nor the check before a
/// send.
package struct SupersessionRace: Sendable {
    /// When the supersession commits.
    private enum Way: Int, CaseIterable {
        /// Between the insert and its commit.
        case beforeCommit
        /// Sent together with the producer's commit, the worker claiming when both are done.
        case withCommit
        /// The same, with a worker that claims meanwhile and checks again before it sends.
        case withCommitAndClaim
        /// Sent together with the insert, so that either may come first by the clock.
        case withInsert
    }

    private let producer, backend: PostgresConnection
    private let worker: RaceWorker
    private let scene: RaceScene

    /// Runs so many tries, the ways in turn.
    package static func run(on server: DatabaseServer, tries: Int, damage: String = "") async throws -> RaceReport {
        try await RaceScene.on(server, damage: damage) { scene in
            var report = RaceReport(
                "a supersession and an enqueue that commits later", on: server,
                requiring: ["superseded at the claim"],
                inMany: ["superseded at the check", "superseded first, so sent"])
            let race = try await SupersessionRace(scene)
            for number in 0..<tries { try await race.attempt(number, &report) }
            try await scene.audit(into: &report)
            await race.stop()
            return report
        }
    }

    private init(_ scene: RaceScene) async throws {
        self.scene = scene
        producer = try await scene.connect("postbell_producer")
        backend = try await scene.connect("postbell_producer")
        worker = try await scene.worker()
        try await scene.admin.register("phone", of: "anna", route: 1)
    }

    private func stop() async {
        await worker.stop()
        for connection in [producer, backend] { await connection.close() }
    }

    private func attempt(_ number: Int, _ report: inout RaceReport) async throws {
        let way = Way(rawValue: number % Way.allCases.count) ?? .beforeCommit
        let batch = try await race(way, number)
        report.tries += 1
        var flush = batch.flush()
        var isSent = batch.dispatches[0].verdict == .send
        if isSent {
            let reasons = try await worker.recheck(batch)
            isSent = reasons == [nil]
            if !isSent {
                report.add("superseded at the check")
                flush.ledger = [
                    batch.row(batch.dispatches[0], batch.targets[0], Outcome(.skipped, reason: "superseded"))
                ]
                if reasons != [.superseded] { report.fail("n\(number): it fell out for another reason") }
            }
        } else {
            report.add("superseded at the claim")
            if batch.dispatches[0].verdict != .superseded { report.fail("n\(number): another verdict") }
            if !batch.targets.isEmpty { report.fail("n\(number): superseded, and has targets") }
        }
        if !isSent {
            flush.ends = [PositionEnd(position: 1, status: .superseded, reason: .superseded, wholeNotification: true)]
        }
        try await worker.settle(flush)
        try await judge(way, number, isSent, &report)
    }

    /// Enqueues and supersedes; what the worker has claimed.
    private func race(_ way: Way, _ number: Int) async throws -> ClaimedBatch {
        switch way {
        case .beforeCommit:
            try await enqueue(number)
            try await supersede(number)
            try await producer.execute("COMMIT")
        case .withCommit:
            try await enqueue(number)
            async let fact: Void = supersede(number)
            try await producer.execute("COMMIT")
            try await fact
        case .withCommitAndClaim:
            try await enqueue(number)
            async let batch = worker.claimed(1)
            async let commit: PostgresResult = producer.execute("COMMIT")
            try await supersede(number)
            _ = try await commit
            return try await batch
        case .withInsert:
            async let fact: Void = supersede(number)
            try await enqueue(number)
            try await fact
            try await producer.execute("COMMIT")
        }
        return try await worker.claimed(1)
    }

    private func enqueue(_ number: Int) async throws {
        _ = try await producer.enqueue(
            to: "anna", key: "n\(number)", more: "subject => 's\(number)'", begin: true)
    }

    private func supersede(_ number: Int) async throws {
        try await backend.execute("SELECT postbell.supersede('default', 's\(number)')")
    }

    /// By the clock readings: what was superseded after it was enqueued is not sent, and nothing else is held back.
    private func judge(_ way: Way, _ number: Int, _ isSent: Bool, _ report: inout RaceReport) async throws {
        let found = try await scene.texts(
            """
            SELECT (u.at > o.created_at) || ' ' || n.status
            FROM postbell.outbox o
            JOIN postbell.supersessions u ON u.subject = o.subject
            JOIN postbell.notifications n ON n.id = o.id
            WHERE o.subject = 's\(number)'
            """)
        switch (found, isSent) {
        case (["true superseded"], false): break
        case (["false dispatched"], true) where way == .withInsert: report.add("superseded first, so sent")
        default: report.fail("n\(number) (\(way)): after it and status \(found), sent \(isSent)")
        }
    }
}
