package import Simulation

/// How a run is made.
package struct PipeOptions: Sendable {
    /// Faults that may strike; nil for all.
    var allowedFaults: Set<Occasion<PipeFault>>?
    /// Doings of the client's owner that may happen, by their number; nil for all.
    var allowedDoings: Set<Int>?
    var defect: PipeDefect?
    var keepsTrace = false

    /// Everything that the seed draws, nothing broken.
    package init(defect: PipeDefect? = nil, keepsTrace: Bool = false) {
        self.defect = defect
        self.keepsTrace = keepsTrace
    }
}

/// A fault that is put between the client and its owner on purpose, to see the rules notice.
package enum PipeDefect: CaseIterable, Sendable {
    /// What is unanswered is called not sent, or the other way round.
    case deniesUnanswered, forgetsWhatWasRefused
    /// A result never comes, or twice, or late.
    case losesResult, repeatsResult, delaysResult
    /// An answer is that of another request.
    case mixesAnswers
}

/// What a run came to.
package struct PipeReport: Sendable {
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
    let struck: [Occasion<PipeFault>]
    /// Requests handed over, and what they came to.
    package let requests: Int
    let answered: Int
    let notSent: Int
    let unanswered: Int
    /// Connections made.
    package let connections: Int
    /// Requests that came to a peer more than once, because the ones before were not looked at.
    let repeated: Int
    /// What happened, line by line; empty unless asked for.
    package let lines: [String]

    /// Runs a seed.
    package static func run(seed: UInt64, _ options: PipeOptions = PipeOptions()) -> PipeReport {
        PipeSimulation(PipePlan(seed: seed), options).run()
    }
}
