import OutboxCore

extension Dispatcher {
    /// Claims whenever a lane has room and the queue has work, until the worker stops.
    func claimWork() async {
        var wake = WakePlan(poll: settings.poll)
        var known: WaitingWork?
        var failures = 0
        while !state.isDraining {
            refreshCapacities()
            guard canWrite, state.wantsWork(at: .now) else {
                known = nil
                await standBy()
                continue
            }
            do {
                let work = try await findWork(known, isAwake: wake.isAwake)
                known = nil
                failures = 0
                let claim = state.planClaim(work, now: .now)
                var rows = 0
                if let claim { rows = try await self.claim(claim.request, lane: claim.lane) }
                guard let claim, rows > 0 else {
                    if let request = claim?.request, scan.othersAreLeft(after: request) { continue }
                    // What waits may be locked by somebody, for as long as they please: no reason to ask in a circle.
                    try await rest(&wake, after: work)
                    continue
                }
                wake.foundWork()
                // A full claim says that there is more where it came from, for as long as no search is allowed. It says
                // nothing of other shares: a worker whose claims are all full still has to look for them.
                if rows >= claim.request.credits.reduce(0, { $0 + $1.rows }) { known = work }
            } catch {
                known = nil
                await storeFailed(error, attempt: failures)
                failures += 1
            }
        }
        isClaiming = false
        settleSignal.ring()
        await letGo()
    }

    private func refreshCapacities() {
        seekAccess(at: .now)
        for (index, lane) in lanes.enumerated() {
            state.updateLane(index) { $0.setCapacity(lane.capacity) }
        }
    }

    private func findWork(_ known: WaitingWork?, isAwake: Bool) async throws(StoreError) -> WaitingWork {
        // A row of full claims costs no more statements than claims.
        if let known, scan.untilAllowed(at: .now) != nil { return known }
        let routes = state.openRoutes(at: .now)
        if settings.holdsAwakeKeys && isAwake { _ = try await store.holdAwake(routes) }
        let askedAt = ContinuousClock.now
        guard scan.untilAllowed(at: askedAt) == nil else {
            return scan.known(at: state.clock.time(at: askedAt), now: askedAt)
        }
        do {
            let work = try await store.waitingWork(on: routes)
            scan.ended(work.shares, cost: askedAt.duration(to: .now), at: .now)
            storeAnswered(work.now, askedAt: askedAt)
            return work
        } catch {
            scan.ended(nil, cost: askedAt.duration(to: .now), at: .now)
            throw error
        }
    }

    /// Nothing can be claimed now: no lane is open, none has room, or results cannot be written.
    private func standBy() async {
        if state.openRoutes(at: .now).isEmpty { await letGo() }
        let now = ContinuousClock.now
        let opens = state.lanes.compactMap { $0.opensAt(after: now) }.min() ?? now + settings.poll
        await claimSignal.wait(until: min(opens, now + settings.poll))
    }

    /// Lets producers notify again; a failure says nothing new, since a dead session holds no keys.
    private func letGo() async {
        guard settings.holdsAwakeKeys else { return }
        do {
            try await store.releaseAwake()
        } catch {
            observer.storeFailed(error)
        }
    }

    private func rest(_ wake: inout WakePlan, after work: WaitingWork) async throws(StoreError) {
        let untilDue = work.shares.map(\.dueAt).filter { $0 > work.now }.min().map { $0 - work.now }
        let untilLook = [untilDue, scan.rest(at: .now)].compactMap { $0 }.min()
        switch wake.foundNothing(untilDue: untilLook, jitter: state.draw(), now: .now) {
        case .letGo:
            if settings.holdsAwakeKeys { try await store.releaseAwake() }
        case .wait(let duration):
            await claimSignal.wait(until: .now + duration)
        }
    }

    /// One claim; answers how many rows it took.
    private func claim(_ request: ClaimRequest, lane: Int) async throws(StoreError) -> Int {
        let askedAt = ContinuousClock.now
        let batch: ClaimedBatch?
        do {
            batch = try await store.claim(request)
        } catch {
            // The claim may have been carried out: the upkeep adopts the lease by its name.
            recovery.claimLost(request.batch, at: .now)
            throw error
        }
        storeAnswered()
        state.claimed(batch, of: request, lane: lane, askedAt: askedAt, now: .now)
        guard let batch else {
            scan.missed(cost: askedAt.duration(to: .now))
            return 0
        }
        scan.claimed(cost: askedAt.duration(to: .now))
        observer.claimed(
            batch: batch.identifier, route: batch.route, rows: batch.dispatches.count, targets: batch.targets.count)
        if batch.dispatches.contains(where: { $0.verdict == .send && kinds[$0.kind] == nil }) {
            // Without its kind a row goes back; the others must not wait for that.
            await attempt { () async throws(StoreError) in try await self.loadKinds() }
        }
        pump(lane)
        return batch.dispatches.count
    }

    func loadKinds() async throws(StoreError) {
        // Hooks first: a kind that is known is sent, and must not be before its hooks are known too.
        let hooks = try await store.hooks()
        let loaded = try await store.kinds()
        for kind in loaded {
            guard let what = kind.unreadable, kinds[kind.number]?.unreadable != what else { continue }
            observer.kindUnreadable(kind.name, because: what)
        }
        kinds = Dictionary(uniqueKeysWithValues: loaded.map { ($0.number, $0) })
        for alarm in state.setHooks(hooks, kinds: loaded, now: .now) { tell(alarm) }
        if state.hooksMayBeAsked { askHooks(at: .now) }
        for (index, lane) in lanes.enumerated() {
            for (kind, fault) in lane.judge(loaded) {
                observer.kindRefused(configurations[index].description.name, kind: kind.name, because: fault)
            }
        }
    }
}
