import Simulation

/// Makes a failing run smaller: fewer doings and fewer faults, as long as the same rule breaks.
package struct PipeShrinker {
    /// One thing that can be left out.
    private enum Part {
        case doing(Int)
        case fault(Occasion<PipeFault>)
    }

    /// The smallest run found, with its trace.
    package private(set) var report: PipeReport
    /// Runs that were tried.
    package private(set) var tries = 0
    private let plan: PipePlan
    private let rule: String
    private var options: PipeOptions

    /// What is left of it: doings, faults.
    package var size: (doings: Int, faults: Int) {
        (options.allowedDoings?.count ?? plan.doings.count, report.struck.count)
    }

    /// What broke, and how small the run is that shows it.
    package var summary: String {
        "http2 seed \(plan.seed): \(report.violation?.description ?? "holds"); shown with \(size.doings) of"
            + " \(plan.doings.count) doings and \(size.faults) faults, after \(tries) tries"
    }

    /// Shrinks the run of a seed that breaks a rule, by at most `limit` tries; nil when it breaks none.
    package init?(seed: UInt64, _ options: PipeOptions = PipeOptions(), limit: Int = 400) {
        plan = PipePlan(seed: seed)
        self.options = options
        report = PipeSimulation(plan, options).run()
        guard let violation = report.violation else { return nil }
        rule = violation.rule
        let parts: [Part] = plan.doings.indices.map { .doing($0) } + report.struck.map { .fault($0) }
        minimize(parts) { kept in
            guard tries < limit else { return nil }
            return keeps(kept)
        }
        self.options.keepsTrace = true
        report = PipeSimulation(plan, self.options).run()
    }

    /// Whether a smaller run breaks the same rule; then it is the one to go on from.
    private mutating func keeps(_ parts: [Part]) -> Bool {
        tries += 1
        var fewer = options
        fewer.allowedDoings = []
        fewer.allowedFaults = []
        for part in parts {
            switch part {
            case .doing(let index): fewer.allowedDoings?.insert(index)
            case .fault(let occasion): fewer.allowedFaults?.insert(occasion)
            }
        }
        let smaller = PipeSimulation(plan, fewer).run()
        guard smaller.violation?.rule == rule else { return false }
        options = fewer
        report = smaller
        return true
    }
}
