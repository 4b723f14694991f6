import EventLoop
import OutboxCore
import Postgres
package import Support

/// A producer commits while a real worker goes to sleep. Before it sleeps, a worker lets go of its awake keys and looks
/// again at once, after 5 ms and after 55 ms; a producer that saw the keys held notifies nobody and may commit later
/// than all of these. Whatever the instant, the push must reach the provider within one poll interval.
package struct SleepRace: Sendable {
    /// The worker's `POSTBELL_POLL`, which is the default.
    package static let poll = Duration.seconds(1)
    /// What the way from a commit to the provider may take beyond the poll, on a machine that is not at rest.
    package static let margin = Duration.milliseconds(500)

    /// When the producer commits.
    private enum Moment: Int, CaseIterable {
        case now, after5, after50

        /// Milliseconds after the keys were let go of.
        var window: ClosedRange<Double> {
            switch self {
            case .now: 0...1
            case .after5: 3...8
            case .after50: 40...70
            }
        }
    }

    /// How long one push took, from the commit to the provider.
    private struct Wait {
        let time: Duration
        let isUnnotified: Bool
    }

    /// Longer than any look before the poll comes.
    private static let polled = Duration.milliseconds(200)
    private let lane: SleepLane

    /// Runs so many tries on `lanes` workers at once, each with a database and a provider of its own. A wait beyond
    /// poll and `margin` breaks the run.
    package static func run(
        on server: DatabaseServer, tries: Int, lanes: Int, margin: Duration = SleepRace.margin
    ) async throws -> RaceReport {
        var report = RaceReport(
            "a commit while a worker goes to sleep", on: server,
            requiring: ["unnotified"], inMany: ["waited for the poll"])
        // The program that is started ends with the thread that started it, which is the loop's.
        let racing = Task(executorPreference: DatabaseServer.loop) {
            try await withThrowingTaskGroup(of: [Wait].self) { group in
                for lane in 0..<lanes {
                    group.addTask { try await race(on: server, numbers: stride(from: lane, to: tries, by: lanes)) }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
        }
        let waits = try await racing.value.sorted { $0.time < $1.time }
        for wait in waits {
            report.tries += 1
            if wait.isUnnotified { report.add("unnotified") }
            report.add(wait.time > polled ? "waited for the poll" : "notified or seen in time")
        }
        let longest = waits.last?.time ?? .zero
        if longest > poll + margin { report.fail("a push waited \(longest), the poll is \(poll)") }
        for (name, share) in [("median", 50), ("99th percentile", 99), ("longest", 100)] where !waits.isEmpty {
            let time = waits[(waits.count - 1) * share / 100].time
            report.figures.append("\(name) \(time.wholeMicroseconds / 1000) ms")
        }
        return report
    }

    private static func race(on server: DatabaseServer, numbers: StrideTo<Int>) async throws -> [Wait] {
        try await SleepLane.on(server) { lane in
            let race = SleepRace(lane: lane)
            var waits: [Wait] = []
            for (turn, number) in numbers.enumerated() { waits.append(try await race.attempt(number, turn: turn)) }
            try await lane.finish()
            return waits
        }
    }

    /// Half of the producers have inserted while the keys were held, and commit later: those notify nobody for sure.
    /// The others insert and commit at once.
    private func attempt(_ number: Int, turn: Int) async throws -> Wait {
        let moment = Moment(rawValue: turn / 2 % 3) ?? .now
        return try await turn.isMultiple(of: 2) ? open(number, moment) : closed(number, moment)
    }

    private func open(_ number: Int, _ moment: Moment) async throws -> Wait {
        try await lane.keepAwake { () async throws in
            for _ in 0..<10_000 {
                if try await lane.isAwake(), try await lane.insertUnnotified(number) { return }
            }
            throw TestSetupError("the worker is never awake")
        }
        try await lane.awaitSleep()
        try await DatabaseServer.loop.sleep(for: .milliseconds(Double.random(in: moment.window)))
        try await lane.producer.execute("COMMIT")
        return Wait(time: try await lane.awaitArrival(), isUnnotified: true)
    }

    private func closed(_ number: Int, _ moment: Moment) async throws -> Wait {
        try await lane.keepAwake { () async throws in
            for _ in 0..<10_000 {
                if try await lane.isAwake() { return }
            }
            throw TestSetupError("the worker is never awake")
        }
        // At once: on either side of the release.
        if moment != .now { try await lane.awaitSleep() }
        try await DatabaseServer.loop.sleep(for: .milliseconds(Double.random(in: moment.window)))
        try await lane.insert(number)
        return Wait(time: try await lane.awaitArrival(), isUnnotified: false)
    }
}
