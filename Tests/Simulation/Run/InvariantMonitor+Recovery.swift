import OutboxCore

/// What a recovery may take, and what it may count as a crash.
extension InvariantMonitor {
    func checkRecovery(_ simulation: Simulation, by recoverer: SimulatedWorker?) {
        for lease in leases where !simulation.store.leases.contains(where: { $0.batch == lease.batch }) {
            let claimed = claimedAt[lease.batch] ?? 0
            let holder = simulation.workers.first { $0.isAlive && $0.owner == lease.owner }
            if let holder, holder.troubledAt < claimed, !clockSteps.contains(where: { $0.at >= claimed }) {
                found("needless", "a lease of worker \(holder.index + 1)")
            }
            guard !mayCount(lease, of: holder, claimedAt: claimed, by: recoverer, simulation) else { continue }
            for row in simulation.store.queue {
                let before = lease.rows.first { $0.notification == row.notification && row.route == lease.route }
                if let before, row.crashes > before.crashes {
                    found("blamed", name(row.notification, simulation.store))
                }
            }
        }
    }

    /// Whether the lapse of a lease may be its worker's own.
    private func mayCount(
        _ lease: LeaseRow, of holder: SimulatedWorker?, claimedAt claimed: Int64, by recoverer: SimulatedWorker?,
        _ simulation: Simulation
    ) -> Bool {
        let steps = clockSteps.filter { $0.at >= claimed }
        // By a clock that was set back no lease lapses early, and whoever began since cannot know of it; nor need who
        // was slow to hear what time it is, unless it has noticed all the same.
        let noticed = recoverer.flatMap { noticedAt[$0.owner] } ?? -1
        let stood = recoverer?.troubledAt ?? 0
        if steps.contains(where: { $0.by < 0 || $0.at > noticed && $0.at < stood }) { return true }
        let lapsed = lapse(of: lease, after: steps, simulation)
        let wasAway = outages.contains { $0.from <= lapsed && $0.until >= claimed }
        guard wasAway || steps.contains(where: { $0.at <= lapsed && $0.by > Self.unnoticed }) else { return true }
        // Dead, or silent since the recovering worker is connected and its leases are what they seem, and that for long
        // enough to have heard of it.
        let steady = noticed < 0 ? 0 : noticed + leaseLength
        let healthy = max(recovery.connectedAt, steady)
        return holder.map { heardAt[$0.owner, default: -1] < healthy } ?? true
            && recovery.askedAt - healthy >= Self.silence
    }

    /// A step that nobody need notice: up to a second, and what a question and its answer take.
    private static let unnoticed: Int64 = 1_050_000

    /// The registry is asked only after four seconds, less what the clocks of workers go wrong.
    private static let silence: Int64 = 3_990_000

    /// When a lease lapsed, by the virtual clock: by itself, or by a step of the database's clock.
    private func lapse(of lease: LeaseRow, after steps: [(at: Int64, by: Int64)], _ simulation: Simulation) -> Int64 {
        var offset = simulation.clockOffset - steps.reduce(0) { $0 + $1.by }
        for step in steps {
            let lapsed = simulation.clock(of: lease.until, offset: offset)
            if lapsed <= step.at { return lapsed }
            offset += step.by
            if simulation.clock(of: lease.until, offset: offset) <= step.at { return step.at }
        }
        return simulation.clock(of: lease.until, offset: offset)
    }
}
