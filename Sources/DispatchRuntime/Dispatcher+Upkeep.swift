import OutboxCore

#if CRASH_POINTS
    import CrashPoints
#endif

extension Dispatcher {
    /// Keeps leases alive and the schema tidy, once a second or when a lease asks for it, until the worker has stopped.
    func keepUp() async {
        var turn = 0
        while !isFinished {
            let now = ContinuousClock.now
            await renewLeases(now: now)
            if !state.isDraining { await recoverAndRefresh(turn: turn) }
            if reportIsDue(at: .now) { await report() }
            turn += 1
            let renewal = state.nextRenewalAt ?? now + .seconds(1)
            await upkeepSignal.wait(until: min(max(renewal, now + .milliseconds(10)), now + .seconds(1)))
        }
        await attempt { () async throws(StoreError) in try await self.store.unregister() }
    }

    private func renewLeases(now: ContinuousClock.Instant) async {
        let due = state.takeRenewals(now: now)
        guard !due.isEmpty else { return }
        await attempt { () async throws(StoreError) in
            let extended = try await self.store.renew(due, lease: self.settings.dispatch.lease)
            self.state.renewed(due, extended: extended, askedAt: now)
        }
    }

    private func recoverAndRefresh(turn: Int) async {
        await attempt { () async throws(StoreError) in try await self.recoverLapsed() }
        await attempt { () async throws(StoreError) in
            let resolved = try await self.store.resolveUnrouted(limit: 100)
            if resolved > 0 { self.claimSignal.ring() }
        }
        let later = laterEffects
        laterEffects = []
        state.returnEffects(later)
        if !later.isEmpty { settleSignal.ring() }
        if turn % 5 == 0 { await refreshRegistry() }
        await retryHeld()
        await watchPending(at: .now)
        if turn % 3600 == 0 {
            await attempt { () async throws(StoreError) in try await self.store.preparePartitions() }
        }
    }

    private func recoverLapsed() async throws(StoreError) {
        if !recovery.lostClaims.isEmpty {
            let askedAt = ContinuousClock.now
            let rows = try await store.adopt(recovery.lostClaims)
            recovery.adopted(askedAt: askedAt)
            if rows > 0 { state.recovered() }
        }
        // Renewed first, or known to be lost; see `holdsLapsedLease`.
        guard !state.holdsLapsedLease(at: .now) else { return }
        guard let time = try await steadyTime() else { return }
        guard let connected = await store.connectedSince(), recovery.holdersAreBack(connected: connected, at: .now)
        else { return }
        let report = try await store.recover(
            knownAt: time, healthySince: recovery.healthySince(connected: state.clock.time(at: connected)), limit: 10,
            maxCrashes: settings.maxCrashes)
        guard report.leases > 0 else { return }
        #if CRASH_POINTS
            CrashPoint.recovered.reached()
        #endif
        observer.recovered(report)
        state.recovered()
        claimSignal.ring()
    }

    /// The database's time; nil when its clock was set within the length of a lease: by such a clock, leases lapse
    /// whose workers are well.
    private func steadyTime() async throws(StoreError) -> Timestamp? {
        let askedAt = ContinuousClock.now
        let time = try await store.waitingWork(on: []).now
        let now = ContinuousClock.now
        if recovery.heard(time, askedAt: askedAt, answeredAt: now) { observer.databaseClockStepped() }
        return recovery.clockIsSteady(at: now) ? time : nil
    }

    /// The registry's routes and kinds as they are now, and this worker's own entry in it.
    func refreshRegistry() async {
        await attempt { () async throws(StoreError) in
            let registry = try await self.store.routes()
            self.routes = Dictionary(uniqueKeysWithValues: registry.map { ($0.number, $0) })
            for (index, configuration) in self.configurations.enumerated() {
                let served = registry.filter(configuration.serves).map(\.number)
                self.state.updateLane(index) { $0.setRoutes(served) }
            }
            try await self.loadKinds()
        }
        await report()
    }

    // MARK: Heartbeat

    /// A lane has changed: people are to see it at once, unless they were told within the last second.
    func laneChanged() {
        lanesChanged = true
        if reportIsDue(at: .now) { upkeepSignal.ring() }
    }

    /// Every five seconds, while stopping too; a changed lane sooner, but not more than once a second.
    private func reportIsDue(at now: ContinuousClock.Instant) -> Bool {
        guard let reportedAt else { return true }
        return reportedAt.duration(to: now) >= (lanesChanged ? .seconds(1) : .seconds(5))
    }

    /// Tells the registry that this worker lives, and how its lanes stand.
    private func report() async {
        let now = ContinuousClock.now
        reportedAt = now
        lanesChanged = false
        let (lanes, hooks) = (state.laneReports, state.hookReports)
        await attempt { () async throws(StoreError) in
            let time = try await self.store.register(
                lanes: lanes, hooks: hooks, version: self.settings.version)
            self.storeAnswered(time, askedAt: now)
        }
    }

    /// Does one piece of upkeep; a failure is told and left to the next turn.
    func attempt(_ work: () async throws(StoreError) -> Void) async {
        do {
            try await work()
        } catch {
            if error.kind == .connection { storeIsDown = true }
            observer.storeFailed(error)
        }
    }
}
