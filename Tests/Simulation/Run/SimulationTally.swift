/// What many runs came to.
package struct SimulationTally: Sendable {
    /// Runs.
    package private(set) var seeds = 0
    /// Seeds that broke a rule, and which.
    package private(set) var failures: [(seed: UInt64, violation: Violation)] = []
    /// How often each fault struck, by its number.
    package private(set) var faults = [Int](repeating: 0, count: FaultKind.allCases.count)
    /// Deaths at each step of a worker, by its number.
    private(set) var steps = [Int](repeating: 0, count: WorkerStep.allCases.count)
    /// How often each passage was come through, by its number.
    package private(set) var passages = [Int](repeating: 0, count: Passage.allCases.count)
    private var events = 0
    private var requests = 0
    private var notifications = 0
    private var duplicates = 0
    private var virtualTime: Int64 = 0

    /// No run yet.
    package init() {}

    /// Counts one run.
    package mutating func add(_ report: SimulationReport) {
        seeds += 1
        events += report.events
        requests += report.requests
        notifications += report.notifications
        duplicates += report.duplicates
        virtualTime += report.virtualTime
        for index in faults.indices { faults[index] += report.faults[index] }
        for index in steps.indices { steps[index] += report.steps[index] }
        for index in passages.indices { passages[index] += report.passages[index] }
        if let violation = report.violation { failures.append((report.seed, violation)) }
    }

    /// Faults, steps to die at and passages that came to pass less than `count` times.
    package func rareFaults(below count: Int) -> [String] {
        FaultKind.allCases.filter { faults[$0.rawValue] < count }.map(\.name)
            + WorkerStep.allCases.filter { steps[$0.rawValue] < count }.map { "crash at \($0)" }
            + Passage.allCases.filter { passages[$0.rawValue] < count }.map(\.name)
    }

    /// All of it in one line; `took` is how long the runs took.
    package func line(took: Duration) -> String {
        let kinds = FaultKind.allCases.map { "\($0.name) \(faults[$0.rawValue])" }.joined(separator: ", ")
        let crashes = WorkerStep.allCases.map { "\($0) \(steps[$0.rawValue])" }.joined(separator: ", ")
        let ways = Passage.allCases.map { "\($0.name) \(passages[$0.rawValue])" }.joined(separator: ", ")
        let seconds = max(Double(took.components.seconds) + Double(took.components.attoseconds) / 1e18, 0.001)
        let factor = Int(Double(virtualTime) / 1_000_000 / seconds)
        return "simulation: \(seeds) seeds, \(events) events, \(notifications) notifications, \(requests) requests,"
            + " \(duplicates) duplicates with a reason; faults: \(kinds); crashes at: \(crashes);"
            + " passages: \(ways); \(factor) times real time;"
            + " \(failures.count) violations"
    }
}
