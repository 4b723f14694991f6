package import Simulation

/// What many runs came to.
package struct PipeTally: Sendable {
    /// Runs.
    package private(set) var seeds = 0
    /// Seeds that broke a rule, and which.
    package private(set) var failures: [(seed: UInt64, violation: Violation)] = []
    /// How often each fault struck, by its number.
    package private(set) var faults = [Int](repeating: 0, count: PipeFault.allCases.count)
    private var events = 0
    private var requests = 0
    private var connections = 0
    private var answered = 0
    private var notSent = 0
    private var unanswered = 0
    private var repeated = 0
    private var virtualTime: Int64 = 0

    /// No run yet.
    package init() {}

    /// Counts one run.
    package mutating func add(_ report: PipeReport) {
        seeds += 1
        events += report.events
        requests += report.requests
        connections += report.connections
        answered += report.answered
        notSent += report.notSent
        unanswered += report.unanswered
        repeated += report.repeated
        virtualTime += report.virtualTime
        for index in faults.indices { faults[index] += report.faults[index] }
        if let violation = report.violation { failures.append((report.seed, violation)) }
    }

    /// Faults that came to pass less than `count` times.
    package func rareFaults(below count: Int) -> [String] {
        PipeFault.allCases.filter { faults[$0.rawValue] < count }.map(\.name)
    }

    /// All of it in one line; `took` is how long the runs took.
    package func line(took: Duration) -> String {
        let kinds = PipeFault.allCases.map { "\($0.name) \(faults[$0.rawValue])" }.joined(separator: ", ")
        let seconds = max(took / .seconds(1), 0.001)
        let factor = Int(Double(virtualTime) / 1_000_000 / seconds)
        return "http2: \(seeds) seeds, \(events) events, \(connections) connections, \(requests) requests: \(answered)"
            + " answered, \(notSent) not sent, \(unanswered) unanswered, \(repeated) repeated; faults: \(kinds);"
            + " \(factor) times real time; \(failures.count) violations"
    }
}
