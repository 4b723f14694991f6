import OutboxCore
import OutboxPostgres
import Postgres
package import Support

/// Two workers of different roles finish one notification at the same instant, each its own route, each in its own way.
/// The derived status must be `pending` until both have, and then the worse of the two ends.
package struct RoleRace: Sendable {
    /// How a route ends.
    private enum End: CaseIterable {
        case delivered, unregistered, nobody, expired, failed

        var status: String {
            switch self {
            case .delivered, .unregistered, .nobody: "dispatched"
            case .expired: "expired"
            case .failed: "failed"
            }
        }

        /// What the core settles for it.
        func flush(_ batch: ClaimedBatch) -> Settlement {
            var flush: Settlement
            let end: (SettlementStatus, SettlementReason)?
            switch self {
            case .delivered: (flush, end) = (batch.flush(), nil)
            case .unregistered: (flush, end) = (batch.flush(Outcome(.unregistered, status: 410)), nil)
            case .nobody: (flush, end) = (batch.flush(), (.dispatched, .muted))
            case .expired: (flush, end) = (batch.flush(), (.expired, .expired))
            case .failed: (flush, end) = (batch.flush(Outcome(.rejected, status: 400)), (.failed, .rejected))
            }
            if self == .nobody || self == .expired { flush.ledger = [] }
            if let end {
                flush.ends = [PositionEnd(position: 1, status: end.0, reason: end.1, wholeNotification: false)]
            }
            return flush
        }
    }

    private static let held = "released at one instant"
    private let scene: RaceScene
    private let producer, gate, reader: PostgresConnection
    private let apns, fcm: RaceWorker

    /// Runs so many tries. Every other one holds both settles at their leases' rows until both are there, and lets go
    /// of them by one commit; the others are sent at once.
    package static func run(on server: DatabaseServer, tries: Int, damage: String = "") async throws -> RaceReport {
        try await RaceScene.on(server, damage: damage) { scene in
            var report = RaceReport(
                "two roles finish one notification", on: server,
                requiring: [held, "read while open", "dispatched", "expired", "failed"])
            let race = try await RoleRace(scene)
            for number in 0..<tries { try await race.attempt(number, &report) }
            try await scene.audit(into: &report)
            await race.stop()
            return report
        }
    }

    private init(_ scene: RaceScene) async throws {
        self.scene = scene
        producer = try await scene.connect("postbell_producer")
        gate = try await scene.database.connect()
        reader = try await scene.database.connect()
        (apns, fcm) = (try await scene.worker(), try await scene.worker())
        try await scene.admin.register("phone", of: "anna", route: 1)
        try await scene.admin.register("tablet", of: "anna", route: 2)
    }

    private func stop() async {
        for worker in [apns, fcm] { await worker.stop() }
        for connection in [producer, gate, reader] { await connection.close() }
    }

    private func attempt(_ number: Int, _ report: inout RaceReport) async throws {
        let ends = End.allCases
        let (one, two) = (ends[number % ends.count], ends[number / ends.count % ends.count])
        let identifier = try await producer.enqueue(to: "anna", key: "n\(number)")
        async let first = apns.claimed(1)
        async let second = fcm.claimed(2)
        let flushes = (one.flush(try await first), two.flush(try await second))
        let isHeld = number.isMultiple(of: 2)
        if isHeld { try await hold(flushes.0.batch, flushes.1.batch) }
        let done = Flag()
        async let read = readings(of: identifier, until: done)
        async let mine = apns.settle(flushes.0)
        async let yours = fcm.settle(flushes.1)
        if isHeld {
            if try await scene.awaitLocked(2) { report.add(Self.held) }
            try await gate.execute("COMMIT")
        }
        let settled = try await (mine, yours)
        done.raise()
        let expected = [one.status, two.status].max { Self.badness($0) < Self.badness($1) } ?? ""
        judge(try await read, number, expected, &report)
        if !settled.0.owned || !settled.1.owned { report.fail("n\(number): a settle did not find its own lease") }
        report.tries += 1
        report.add(expected)
    }

    private static func badness(_ status: String) -> Int {
        ["dispatched", "expired", "failed"].firstIndex(of: status) ?? -1
    }

    private func hold(_ first: Identifier, _ second: Identifier) async throws {
        try await gate.execute(
            "BEGIN; SELECT 1 FROM postbell.leases WHERE batch IN ('\(first)', '\(second)') FOR UPDATE")
    }

    private func readings(of identifier: Identifier, until done: Flag) async throws -> [String] {
        var parameters = PostgresParameters()
        parameters.append(uuid: (identifier.high, identifier.low))
        var readings: [String] = []
        while true {
            let isLast = done.isRaised
            readings.append(try await reader.query(Self.status, parameters).text(0, 0))
            if isLast { return readings }
        }
    }

    private func judge(_ readings: [String], _ number: Int, _ expected: String, _ report: inout RaceReport) {
        let open = readings.prefix { $0 == "pending open" }
        report.add("read while open", open.count)
        report.add("read afterwards", readings.count - open.count)
        for reading in readings[open.count...] where reading != expected {
            report.fail("n\(number) must be \(expected) and was read as \(reading)")
        }
        if open.count == readings.count { report.fail("n\(number) is still open") }
    }

    private static let status = PostgresStatement(
        "status_of",
        "SELECT status || CASE WHEN place IS NULL THEN '' ELSE ' open' END FROM postbell.notifications WHERE id = $1",
        parameterTypes: [.uuid])
}
