// swift-format-ignore-file: OnlyOneTrailingClosureArgument
// What a statement does is a closure, and what comes after its answer is the one that trails: it reads as an await.

import OutboxCore

/// Claims while a lane has room and the queue has work: `Dispatcher.claimWork`.
extension SimulatedWorker {
    func claimTurn() {
        guard !state.isDraining else {
            isClaiming = false
            settleSignal.ring()
            return letGo {}
        }
        refreshCapacities()
        guard state.wantsWork(at: now) else {
            known = nil
            return standBy()
        }
        findWork { [self] found in
            switch found {
            case .failure(let error): claimFailed(error)
            case .success(let work):
                known = nil
                claimFailures = 0
                claimed(from: work)
            }
        }
    }

    private func claimed(from work: WaitingWork) {
        guard let (request, lane) = state.planClaim(work, now: now) else { return rest(after: work) }
        claim(request, lane: lane) { [self] rows in
            switch rows {
            case .failure(let error): claimFailed(error)
            case .success(0):
                if scan.othersAreLeft(after: request) { claimTurn() } else { rest(after: work) }
            case .success(let rows):
                wakePlan.foundWork()
                if rows >= request.credits.reduce(0, { $0 + $1.rows }) { known = work }
                claimTurn()
            }
        }
    }

    private func refreshCapacities() {
        for (index, lane) in lanes.enumerated() { state.updateLane(index) { $0.setCapacity(lane.room) } }
    }

    private func claimFailed(_ error: StoreError) {
        known = nil
        let wait = Duration.milliseconds(min(2000, 50 << min(claimFailures, 6)))
        claimFailures += 1
        at(now + wait) { [self] in claimTurn() }
    }

    private func findWork(_ then: @escaping (Result<WaitingWork, StoreError>) -> Void) {
        if let known, scan.untilAllowed(at: now) != nil { return then(.success(known)) }
        let routes = state.openRoutes(at: now)
        guard wakePlan.isAwake else { return look(on: routes, then) }
        let owner = owner
        ask(.holdAwake, { store in store.holdAwake(routes, owner: owner) }) { [self] held in
            switch held {
            case .failure(let error): then(.failure(error))
            case .success: look(on: routes, then)
            }
        }
    }

    private func look(on routes: [RouteNumber], _ then: @escaping (Result<WaitingWork, StoreError>) -> Void) {
        let askedAt = now
        guard scan.untilAllowed(at: askedAt) == nil else {
            return then(.success(scan.known(at: state.clock.time(at: askedAt), now: askedAt)))
        }
        ask(.waiting, { $0.waitingWork(on: routes) }) { [self] found in
            let cost = askedAt.duration(to: now)
            switch found {
            case .failure(let error):
                scan.ended(nil, cost: cost, at: now)
                then(.failure(error))
            case .success(let work):
                scan.ended(work.shares, cost: cost, at: now)
                heard(work.now, askedAt: askedAt)
                then(.success(work))
            }
        }
    }

    /// Nothing can be claimed now.
    private func standBy() {
        let wait = { [self] in
            let opens = state.lanes.compactMap { $0.opensAt(after: now) }.min() ?? now + simulation.plan.poll
            claimSignal.wait(until: min(opens, now + simulation.plan.poll)) { [self] in claimTurn() }
        }
        if state.openRoutes(at: now).isEmpty { letGo(wait) } else { wait() }
    }

    private func letGo(_ then: @escaping () -> Void) {
        let owner = owner
        ask(.releaseAwake, { $0.releaseAwake(owner: owner) }) { _ in then() }
    }

    private func rest(after work: WaitingWork) {
        let untilDue = work.shares.map(\.dueAt).filter { $0 > work.now }.min().map { $0 - work.now }
        let untilLook = [untilDue, scan.rest(at: now)].compactMap { $0 }.min()
        switch wakePlan.foundNothing(untilDue: untilLook, jitter: state.draw(), now: now) {
        case .letGo:
            let owner = owner
            ask(.releaseAwake, { $0.releaseAwake(owner: owner) }) { [self] released in
                if case .failure(let error) = released { claimFailed(error) } else { claimTurn() }
            }
        case .wait(let duration):
            claimSignal.wait(until: now + duration) { [self] in claimTurn() }
        }
    }

    private func claim(
        _ request: ClaimRequest, lane: Int, _ then: @escaping (Result<Int, StoreError>) -> Void
    ) {
        let askedAt = now
        let owner = owner
        ask(.claim, { $0.claim(request, owner: owner) }) { [self] answer in
            switch answer {
            case .failure(let error):
                recovery.claimLost(request.batch, at: now)
                then(.failure(error))
            case .success(let batch):
                if let time = batch?.claimedAt { heard(time, askedAt: askedAt) }
                let slot = state.claimed(batch, of: request, lane: lane, askedAt: askedAt, now: now)
                guard let batch else {
                    scan.missed(cost: askedAt.duration(to: now))
                    return then(.success(0))
                }
                scan.claimed(cost: askedAt.duration(to: now))
                if let slot { checks[slot] = askedAt + simulation.plan.settings.recheckAfter }
                simulation.note(index, "claimed", batch.dispatches.count, batch.targets.count, describe(batch))
                pump(lane)
                then(.success(batch.dispatches.count))
            }
        }
    }
}

extension SimulatedWorker {
    private func describe(_ batch: ClaimedBatch) -> String {
        batch.dispatches.map { row in
            let devices = batch.targets[row.targets].map { "\($0.device)" }.joined(separator: ",")
            let cursor = row.cursor == .start ? "" : " after \(row.cursor.rawValue)"
            let wait = row.heldUntil.map { " others in \(($0 - batch.claimedAt).wholeMicroseconds / 1000) ms" } ?? ""
            let verdict = row.verdict == .send ? "[\(devices)]" : "\(row.verdict)"
            let name = simulation.monitor.name(row.notification, simulation.store)
            return "\(name)/\(batch.route) \(verdict)\(cursor)\(wait)"
        }.joined(separator: ", ")
    }
}

extension SimulatedStore {
    /// Takes the awake keys that nobody holds; answers those held.
    mutating func holdAwake(_ routes: [RouteNumber], owner: Identifier) -> [RouteNumber] {
        for route in routes where !awake.contains(where: { $0.route == route }) { awake.append((route, owner)) }
        return awake.filter { $0.owner == owner }.map(\.route)
    }

    mutating func releaseAwake(owner: Identifier) {
        awake.removeAll { $0.owner == owner }
    }
}
