/// Makes a failing run smaller: fewer workers, fewer people's doings, fewer faults, as long as the same rule breaks.
package struct Shrinker {
    /// One thing that can be left out.
    private enum Part: Hashable {
        case event(Int)
        case fault(FaultKey)
    }

    /// The smallest run found, with its trace.
    package private(set) var report: SimulationReport
    /// Runs that were tried.
    package private(set) var tries = 0
    /// What is left of it: workers, doings, faults.
    package var size: (workers: Int, events: Int, faults: Int) {
        (options.workers ?? plan.workers, options.allowedEvents?.count ?? plan.producers.count, report.struck.count)
    }

    /// What broke, and how small the run is that shows it.
    package var summary: String {
        let (workers, events, faults) = size
        return "seed \(plan.seed): \(report.violation?.description ?? "holds"); shown with \(workers) of"
            + " \(plan.workers) workers, \(events) of \(plan.producers.count) doings of people and \(faults) faults,"
            + " after \(tries) tries"
    }

    private let plan: SimulationPlan
    private let rule: String
    private var options: SimulationOptions
    private let limit: Int

    /// Shrinks the run of a seed that breaks a rule, by at most `limit` tries; nil when it breaks none.
    package init?(seed: UInt64, _ options: SimulationOptions = SimulationOptions(), limit: Int = 400) {
        plan = SimulationPlan(seed: seed)
        self.options = options
        self.limit = limit
        report = Simulation(plan, options).run()
        guard let violation = report.violation else { return nil }
        rule = violation.rule
        shrinkWorkers()
        shrinkParts()
        self.options.keepsTrace = true
        report = Simulation(plan, self.options).run()
    }

    private mutating func shrinkWorkers() {
        for workers in 1..<plan.workers {
            var fewer = options
            fewer.workers = workers
            if keeps(fewer) { return }
        }
    }

    private mutating func shrinkParts() {
        let parts: [Part] = plan.producers.indices.map { .event($0) } + report.struck.map { .fault($0) }
        minimize(parts) { kept in
            guard tries < limit else { return nil }
            return keeps(options(with: kept))
        }
    }

    private func options(with parts: [Part]) -> SimulationOptions {
        var fewer = options
        fewer.allowedEvents = []
        fewer.allowedFaults = []
        for part in parts {
            switch part {
            case .event(let index): fewer.allowedEvents?.insert(index)
            case .fault(let key): fewer.allowedFaults?.insert(key)
            }
        }
        return fewer
    }

    /// Whether a smaller run breaks the same rule; then it is the one to go on from.
    private mutating func keeps(_ fewer: SimulationOptions) -> Bool {
        tries += 1
        let smaller = Simulation(plan, fewer).run()
        guard smaller.violation?.rule == rule else { return false }
        options = fewer
        report = smaller
        return true
    }
}
