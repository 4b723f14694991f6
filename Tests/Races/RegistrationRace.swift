import EventLoop
import OutboxCore
import OutboxPostgres
import Postgres
package import Support

/// A device registers just before and just after a notification for its person is enqueued, while a worker claims and
/// settles all that comes. Nobody may be left out, and no status may go back from a final one.
package struct RegistrationRace: Sendable {
    /// Which of the two transactions commits first.
    package enum Order: String, CaseIterable, Sendable {
        case before = "a device registers just before an enqueue"
        case after = "a device registers just after an enqueue"
        /// Each is open while the other commits.
        case overlapping = "a registration and an enqueue overlap"
    }

    /// What the person has when it begins.
    private enum Household: Int, CaseIterable {
        /// No device: the notification waits for a first one.
        case empty
        /// A device on another route than the new one: a queue row of its own is needed.
        case otherRoute
        /// A device on the same route.
        case sameRoute
    }

    /// One try, as it is judged when all has settled.
    private struct Attempt {
        let principal: String
        let household: Household
        /// Whether the worker may claim before the registration.
        let isRacing: Bool
        /// Of two that overlap, whether the registration is the one that stays open.
        let registersOpen: Bool
        var notification = ""
        /// After the registration's commit.
        var registeredAt = Timestamp(microseconds: 0)
    }

    private static let stretch = 250
    private let scene: RaceScene
    private let order: Order
    private let producer, registrar, watcher: PostgresConnection
    private let worker: RaceWorker

    /// Runs so many tries, a stretch of them at a time.
    package static func run(
        _ order: Order, on server: DatabaseServer, tries: Int, damage: String = ""
    ) async throws -> RaceReport {
        try await RaceScene.on(server, damage: damage) { scene in
            var report = RaceReport(order.rawValue, on: server, requiring: ["reached"])
            let race = try await RegistrationRace(order, scene)
            for first in stride(from: 0, to: tries, by: stretch) {
                try await race.run(first..<min(tries, first + stretch), &report)
            }
            try await scene.audit(into: &report)
            await race.stop()
            return report
        }
    }

    private init(_ order: Order, _ scene: RaceScene) async throws {
        (self.scene, self.order) = (scene, order)
        producer = try await scene.connect("postbell_producer")
        registrar = try await scene.connect("postbell_registrar")
        watcher = try await scene.database.connect()
        worker = try await scene.worker()
    }

    private func stop() async {
        await worker.stop()
        for connection in [producer, registrar, watcher] { await connection.close() }
    }

    // MARK: A stretch

    private func run(_ numbers: Range<Int>, _ report: inout RaceReport) async throws {
        var attempts: [Attempt] = []
        for number in numbers { attempts.append(try await prepare(number)) }
        let done = Flag()
        var random = SystemRandomNumberGenerator()
        let begun = Identifier.timeOrdered(at: try await scene.admin.clock() + .milliseconds(-2), using: &random)
        async let watched = StatusWatch.run(from: begun, on: watcher, until: done)
        async let claims = work(until: done)
        for index in attempts.indices { try await attempt(&attempts[index]) }
        try await scene.admin.execute("UPDATE postbell.queue SET due_at = now() WHERE due_at > now()")
        try await awaitEnd()
        done.raise()
        let (watch, claimedAt) = (try await watched, try await claims)
        for fault in watch.faults { report.fail(fault) }
        report.add("statuses read", watch.readings)
        try await judge(attempts, claimedAt, &report)
    }

    private func prepare(_ number: Int) async throws -> Attempt {
        let household = Household(rawValue: number % 3) ?? .empty
        let attempt = Attempt(
            principal: "p\(number)", household: household,
            isRacing: household != .empty && (order != .after || number / 3 % 2 == 0),
            registersOpen: number.isMultiple(of: 2))
        switch household {
        case .empty: break
        case .otherRoute: try await registrar.register("old", of: attempt.principal, route: 1)
        case .sameRoute: try await registrar.register("old", of: attempt.principal, route: 2)
        }
        return attempt
    }

    private func attempt(_ attempt: inout Attempt) async throws {
        switch order {
        case .before:
            try await register(attempt)
            attempt.notification = try await enqueue(attempt)
        case .after:
            attempt.notification = try await enqueue(attempt)
            try await register(attempt)
        case .overlapping where !attempt.registersOpen:
            attempt.notification = try await enqueue(attempt, begin: true)
            try await register(attempt)
            try await producer.execute("COMMIT")
        case .overlapping:
            try await register(attempt, begin: true)
            attempt.notification = try await enqueue(attempt)
            try await registrar.execute("COMMIT")
        }
        attempt.registeredAt = try await scene.admin.clock()
    }

    private func register(_ attempt: Attempt, begin: Bool = false) async throws {
        try await registrar.register("new", of: attempt.principal, route: 2, begin: begin)
    }

    private func enqueue(_ attempt: Attempt, begin: Bool = false) async throws -> String {
        let later = attempt.isRacing || attempt.household == .empty ? "" : "not_before => now() + interval '1 h'"
        return try await producer.enqueue(
            attempt.household == .empty ? "patient" : "note", to: attempt.principal, key: attempt.principal,
            more: later, begin: begin
        ).description
    }

    // MARK: The worker

    /// Claims, delivers and settles all that is due; when each notification was first claimed.
    private func work(until done: Flag) async throws -> [String: Timestamp] {
        var claimedAt: [String: Timestamp] = [:]
        while !done.isRaised {
            var rows = try await worker.store.resolveUnrouted(limit: 1000)
            for route: RouteNumber in [1, 2] {
                guard let batch = try await worker.claim(route, rows: 100) else { continue }
                rows += batch.dispatches.count
                for dispatch in batch.dispatches {
                    let name = dispatch.notification.description
                    claimedAt[name] = min(claimedAt[name] ?? batch.claimedAt, batch.claimedAt)
                }
                try await worker.settle(batch.flush())
            }
            if rows == 0 { try? await DatabaseServer.loop.sleep(for: .milliseconds(1)) }
        }
        return claimedAt
    }

    private func awaitEnd() async throws {
        for _ in 0..<30_000 {
            if try await scene.texts("SELECT count(*) FROM postbell.places") == ["0"] { return }
            try await DatabaseServer.loop.sleep(for: .milliseconds(2))
        }
        throw TestSetupError("what was enqueued has not ended")
    }

    // MARK: Judging

    private func judge(
        _ attempts: [Attempt], _ claimedAt: [String: Timestamp], _ report: inout RaceReport
    ) async throws {
        let ends = Set(
            try await scene.texts(
                """
                SELECT concat_ws(' ', n.id, n.status, v.client_device_id)
                FROM postbell.notifications n
                LEFT JOIN postbell.deliveries d ON d.notification_id = n.id AND d.final AND d.outcome = 0
                LEFT JOIN postbell.devices v ON v.device_no = d.device_no
                WHERE n.principal_id IN (\(attempts.map { "'\($0.principal)'" }.joined(separator: ", ")))
                """))
        for attempt in attempts {
            report.tries += 1
            let reached = "\(attempt.notification) dispatched"
            if attempt.household != .empty, !ends.contains("\(reached) old") {
                report.fail("\(attempt.principal): the device that was there first was not reached")
            }
            if ends.contains("\(reached) new") {
                report.add("reached")
            } else if let first = claimedAt[attempt.notification], attempt.isRacing, order == .after,
                first <= attempt.registeredAt
            {
                report.add("had been claimed before it")
            } else if order == .overlapping, attempt.household != .empty {
                report.add(attempt.household == .otherRoute ? "missed on a new route" : "missed on the same route")
            } else {
                report.fail("\(attempt.principal) (\(attempt.household)): the new device was left out")
            }
        }
    }
}
