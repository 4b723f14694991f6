import OutboxCore
import OutboxPostgres
import Postgres
package import Support

/// Of two devices of one notification one has been delivered to and the other is released unsent. Another worker claims
/// as soon as there is something, while the first settles, repeats its settle, loses its lease, or the delivered device
/// registers again. The delivered one must never be a target again.
package struct ReleaseRace: Sendable {
    /// What the first worker does while the second one claims.
    private enum Way: Int, CaseIterable {
        case oneFlush, twoFlushes, flushTwiceAtOnce, heldAtLease, recovered
    }

    private static let held = "released at one instant"
    private let scene: RaceScene
    private let producer, registrar, gate: PostgresConnection
    /// Two sessions of one worker: a flush may be repeated by any.
    private let first, twin: RaceWorker
    private let second: RaceWorker

    /// Runs so many tries, the ways in turn.
    package static func run(on server: DatabaseServer, tries: Int, damage: String = "") async throws -> RaceReport {
        try await RaceScene.on(server, damage: damage) { scene in
            var report = RaceReport(
                "one device delivered, one released", on: server,
                requiring: [held, "claimed again"],
                inMany: ["settled before the recovery", "settled after the recovery"])
            let race = try await ReleaseRace(scene)
            for number in 0..<tries { try await race.attempt(number, &report) }
            try await race.count(into: &report)
            try await scene.audit(into: &report)
            await race.stop()
            return report
        }
    }

    private init(_ scene: RaceScene) async throws {
        self.scene = scene
        producer = try await scene.connect("postbell_producer")
        registrar = try await scene.connect("postbell_registrar")
        gate = try await scene.database.connect()
        first = try await scene.worker()
        twin = try await scene.worker(owner: first.owner)
        second = try await scene.worker()
        try await registrar.register("phone", of: "anna", route: 1)
        try await registrar.register("tablet", of: "anna", route: 1)
    }

    private func stop() async {
        for worker in [first, twin, second] { await worker.stop() }
        for connection in [producer, registrar, gate] { await connection.close() }
    }

    private func attempt(_ number: Int, _ report: inout RaceReport) async throws {
        let way = Way(rawValue: number % Way.allCases.count) ?? .oneFlush
        _ = try await producer.enqueue(to: "anna", key: "n\(number)")
        let batch = try await first.claimed(1, lease: way == .recovered ? .microseconds(1) : .seconds(300))
        guard batch.devices.count == 2 else { throw TestSetupError("the claim has \(batch.devices.count) devices") }
        // Which of the two is the delivered one changes.
        let delivered = batch.targets[number / Way.allCases.count % 2]
        var flush = Settlement(batch: batch.identifier, route: 1, positions: 1)
        flush.ledger = [batch.row(batch.dispatches[0], delivered)]
        flush.leaving = [1]
        flush.returns = [QueueReturn(position: 1, delay: .zero, attempt: 0, cursor: .start, clearsCrashes: true)]
        let again = try await race(way, flush, number, &report)
        report.tries += 1
        report.add("claimed again")
        if again.devices.contains(delivered.device) || again.devices.count != 1 {
            report.fail("n\(number) (\(way)): \(delivered.device) is delivered, targets are \(again.devices)")
        }
        // The old flush once more, beside the settle of the new lease.
        async let late = first.settle(flush)
        async let last = second.settle(again.flush())
        let reports = try await (late, last)
        if reports.0.returned > 0 { report.fail("n\(number) (\(way)): a repeated flush moved something") }
    }

    /// Lets the first worker's settle and the second one's claim race; what the second one has got.
    private func race(
        _ way: Way, _ flush: Settlement, _ number: Int, _ report: inout RaceReport
    ) async throws -> ClaimedBatch {
        if way == .recovered { return try await raceRecovery(flush, &report) }
        if way == .heldAtLease {
            try await gate.execute("BEGIN; SELECT 1 FROM postbell.leases WHERE batch = '\(flush.batch)' FOR UPDATE")
        }
        async let again = second.claimed(1)
        async let registration: Void = registerAgain(number)
        if way == .twoFlushes {
            try await first.settle(flush.part(ledger: flush.ledger[...], leaving: []))
            try await first.settle(flush.part(ledger: [], leaving: [1]))
        } else {
            async let own = first.settle(flush)
            async let twice: SettleReport? = way == .flushTwiceAtOnce ? twin.settle(flush) : nil
            if way == .heldAtLease {
                if try await scene.awaitLocked(1) { report.add(Self.held) }
                try await gate.execute("COMMIT")
            }
            let reports = try await (own, twice)
            let returned = reports.0.returned + (reports.1?.returned ?? 0)
            if returned != 1 { report.fail("n\(number) (\(way)): \(returned) rows went back, not 1") }
        }
        try await registration
        return try await again
    }

    /// The lease has lapsed: its settle and a recovery at once. The claim comes when both are done: in between the
    /// late row is not there yet, and a second send is what `unknown` says.
    private func raceRecovery(_ flush: Settlement, _ report: inout RaceReport) async throws -> ClaimedBatch {
        async let own = first.settle(flush)
        let future = Timestamp(microseconds: 4_000_000_000_000_000)
        async let recovery = second.store.recover(knownAt: future, healthySince: future, limit: 100, maxCrashes: 5)
        let (settled, recovered) = try await (own, recovery)
        report.add(settled.owned ? "settled before the recovery" : "settled after the recovery")
        if settled.owned == (recovered.rows > 0) {
            report.fail("a lapsed row went back \(settled.owned ? "twice" : "never")")
        }
        return try await second.claimed(1)
    }

    private func registerAgain(_ number: Int) async throws {
        guard number.isMultiple(of: 2) else { return }
        try await registrar.register(number.isMultiple(of: 4) ? "phone" : "tablet", of: "anna", route: 1)
    }

    /// Each device must have been delivered to once per notification.
    private func count(into report: inout RaceReport) async throws {
        let wrong = try await scene.texts(
            """
            SELECT o.dedupe_key || ': ' || count(d.id) || ' delivered' FROM postbell.outbox o
            LEFT JOIN postbell.deliveries d ON d.notification_id = o.id AND d.outcome = 0
            GROUP BY o.id, o.dedupe_key
            HAVING count(d.id) <> 2 OR count(DISTINCT d.device_no) <> 2
            """)
        for line in wrong { report.fail(line) }
        let pending = try await scene.texts(
            "SELECT dedupe_key FROM postbell.notifications WHERE status <> 'dispatched'")
        for key in pending { report.fail("\(key) has not ended as dispatched") }
    }
}
