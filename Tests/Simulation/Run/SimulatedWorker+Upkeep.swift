// swift-format-ignore-file: OnlyOneTrailingClosureArgument
// What a statement does is a closure, and what comes after its answer is the one that trails: it reads as an await.

import OutboxCore

/// Keeps leases alive, recovers those of others, and ends what waits for nobody: `Dispatcher.keepUp`.
extension SimulatedWorker {
    func upkeepTurn(_ turn: Int) {
        guard !isFinished else {
            let owner = owner
            return ask(.unregister, { $0.unregister(owner) }) { [self] _ in die("stopped") }
        }
        let began = now
        renewLeases { [self] in
            recoverAndRefresh(turn) { [self] in
                report { [self] in
                    let renewal = state.nextRenewalAt ?? began + .seconds(1)
                    let next = min(max(renewal, began + .milliseconds(10)), began + .seconds(1))
                    upkeepSignal.wait(until: next) { [self] in upkeepTurn(turn + 1) }
                }
            }
        }
    }

    private func renewLeases(_ then: @escaping () -> Void) {
        let askedAt = now
        let due = state.takeRenewals(now: askedAt)
        guard !due.isEmpty else { return then() }
        let (owner, lease) = (owner, simulation.plan.settings.lease)
        ask(.renew, { $0.renew(due, owner: owner, lease: lease) }) { [self] answer in
            if case .success(let extended) = answer { state.renewed(due, extended: extended, askedAt: askedAt) }
            then()
        }
    }

    private func recoverAndRefresh(_ turn: Int, _ then: @escaping () -> Void) {
        guard !state.isDraining else { return then() }
        adoptLost { [self] in
            recoverLapsed { [self] in
                resolveUnrouted { [self] in
                    if !laterEffects.isEmpty {
                        state.returnEffects(laterEffects)
                        laterEffects = []
                        settleSignal.ring()
                    }
                    let goOn = { [self] in retryHeld(then) }
                    if turn > 0 && turn.isMultiple(of: 5) { refreshRegistry(goOn) } else { goOn() }
                }
            }
        }
    }

    private func adoptLost(_ then: @escaping () -> Void) {
        let lost = recovery.lostClaims
        guard !lost.isEmpty else { return then() }
        let (askedAt, owner) = (now, owner)
        ask(.adopt, { $0.adopt(lost, owner: owner) }) { [self] answer in
            if case .success(let rows) = answer {
                recovery.adopted(askedAt: askedAt)
                if rows > 0 { state.recovered() }
            }
            then()
        }
    }

    private func recoverLapsed(_ then: @escaping () -> Void) {
        if defect == .recoversAtOnce {
            return recover(knownAt: simulation.databaseTime, healthySince: Timestamp(microseconds: 0), then)
        }
        guard !state.holdsLapsedLease(at: now) else { return then() }
        let askedAt = now
        ask(.waiting, { $0.now }) { [self] answer in
            guard case .success(let time) = answer else { return then() }
            if recovery.heard(time, askedAt: askedAt, answeredAt: now) {
                simulation.note(index, "hears of a set clock")
                simulation.monitor.noticedAt[owner] = simulation.clock - askedAt.duration(to: now).wholeMicroseconds
            }
            guard recovery.clockIsSteady(at: now), let connected = connectedSince,
                recovery.holdersAreBack(connected: connected, at: now)
            else { return then() }
            recover(
                knownAt: time, healthySince: recovery.healthySince(connected: state.clock.time(at: connected)), then)
        }
    }

    private func recover(knownAt: Timestamp, healthySince: Timestamp, _ then: @escaping () -> Void) {
        let (maxCrashes, connectedAt) = (simulation.plan.maxCrashes, connectedAt)
        let askedAt = simulation.clock
        let run = { (simulation: Simulation) -> Result<RecoveryReport, StoreError> in
            simulation.monitor.recovery = (connectedAt: connectedAt, askedAt: askedAt)
            return .success(
                simulation.store.recover(
                    knownAt: knownAt, healthySince: healthySince, limit: 10, maxCrashes: maxCrashes))
        }
        simulation.ask(self, .recover, run) { [self] answer in
            if case .success(let report) = answer, report.leases > 0 {
                simulation.note(index, "recovered", report.leases, report.rows)
                state.recovered()
                claimSignal.ring()
            }
            then()
        }
    }

    private func resolveUnrouted(_ then: @escaping () -> Void) {
        let sweeps = nextSweep <= now
        if sweeps { nextSweep = now + .seconds(60) }
        ask(
            .resolve,
            { store in
                let (resolved, routes) = store.resolveUnrouted(limit: 100)
                return (resolved + (sweeps ? store.sweep() : 0), routes)
            }
        ) { [self] answer in
            if case .success(let (resolved, routes)) = answer {
                if resolved > 0 { claimSignal.ring() }
                if !routes.isEmpty { simulation.notifyWorkers(nextOccasion()) }
            }
            then()
        }
    }

    private func retryHeld(_ then: @escaping () -> Void) {
        let routes = lanesToRetry.map { lanes[$0].route }
        guard !routes.isEmpty else { return then() }
        let asked = lanesToRetry
        lanesToRetry = []
        ask(.retryHeld, { $0.retryHeld(on: routes) }) { [self] answer in
            switch answer {
            case .success(let moved) where moved > 0:
                state.recovered()
                claimSignal.ring()
            case .failure(let error) where error.kind == .connection: lanesToRetry = asked
            default: break
            }
            then()
        }
    }

    func refreshRegistry(_ then: @escaping () -> Void) {
        ask(.routes, { $0.hooks }) { [self] answer in
            if case .success(let hooks) = answer {
                for (index, lane) in lanes.enumerated() {
                    state.updateLane(index) { $0.setRoutes([lane.route]) }
                }
                knownHooks = hooks
                _ = state.setHooks(hooks, kinds: SimulatedStore.kinds, now: now)
                if state.hooksMayBeAsked { askHooks() }
            }
            report(then)
        }
    }

    /// The heartbeat, every five seconds.
    private func report(_ then: @escaping () -> Void) {
        if let reportedAt, reportedAt.duration(to: now) < .seconds(5) { return then() }
        let (askedAt, owner) = (now, owner)
        reportedAt = askedAt
        ask(.register, { $0.register(owner) }) { [self] answer in
            if case .success(let time) = answer { heard(time, askedAt: askedAt) }
            then()
        }
    }
}
