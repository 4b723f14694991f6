/// How a run is made.
package struct SimulationOptions: Sendable {
    /// At most so many workers; nil for as many as the seed says.
    var workers: Int?
    /// Faults that may strike; nil for all.
    var allowedFaults: Set<FaultKey>?
    /// Producer events that may happen, by their index; nil for all.
    var allowedEvents: Set<Int>?
    var storeDefect: StoreDefect?
    var driverDefect: DriverDefect?
    var keepsTrace = false

    /// Everything that the seed draws, nothing broken.
    package init(storeDefect: StoreDefect? = nil, driverDefect: DriverDefect? = nil, keepsTrace: Bool = false) {
        self.storeDefect = storeDefect
        self.driverDefect = driverDefect
        self.keepsTrace = keepsTrace
    }
}

/// A rule that a run broke.
package struct Violation: Equatable, Sendable, CustomStringConvertible {
    /// Which rule.
    package let rule: String
    /// By what.
    package let detail: String

    /// A rule, and what broke it.
    package init(rule: String, detail: String) {
        self.rule = rule
        self.detail = detail
    }

    package var description: String { "\(rule): \(detail)" }
}

/// What a run came to.
package struct SimulationReport: Sendable {
    /// What it was drawn from.
    package let seed: UInt64
    /// Of all that happened: the same seed has the same hash.
    package let hash: UInt64
    /// The first rule that was broken; nil when all held.
    package let violation: Violation?
    /// Events noted.
    package let events: Int
    /// Length in microseconds of virtual time.
    package let virtualTime: Int64
    /// How often each fault struck, by its number.
    package let faults: [Int]
    let struck: [FaultKey]
    /// Requests that reached the provider.
    package let requests: Int
    /// Accepted more than once, with a reason.
    package let duplicates: Int
    /// Notifications that were enqueued.
    package let notifications: Int
    /// Deaths and stops at each step of a worker, by the step's number.
    let steps: [Int]
    /// How often each passage was come through, by its number.
    let passages: [Int]
    /// What happened, line by line; empty unless asked for.
    package let lines: [String]

    /// Runs a seed.
    package static func run(seed: UInt64, _ options: SimulationOptions = SimulationOptions()) -> SimulationReport {
        Simulation(SimulationPlan(seed: seed), options).run()
    }
}
