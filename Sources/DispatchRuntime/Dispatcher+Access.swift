import OutboxCore

extension Dispatcher {
    /// Asks for access for the lanes that lack it and are open: at the start, and when a pause is to be probed.
    func seekAccess(at now: ContinuousClock.Instant) {
        for (index, lane) in lanes.enumerated() where !lane.hasAccess && state.lanes[index].isOpen(at: now) {
            let access = lane.authorize(wallClock: wallClock(), isProbe: state.lanes[index].doubtsCredential)
            if isNews(access, after: lane.access) { accessChanged(lane: index, access) }
        }
    }

    /// What is still on its way, or tries again by itself, is none; a refusal always ends a probe.
    private func isNews(_ access: ProviderAccess, after last: ProviderAccess) -> Bool {
        if case .refused = access { true } else { access != last }
    }

    /// A lane's access came or went.
    func accessChanged(lane: Int, _ access: ProviderAccess) {
        noteAccess(lane: lane, access)
        handleAlarms()
        pump(lane)
        if case .granted = access { claimSignal.ring() }
    }

    /// The same, for a caller that goes on by itself.
    func noteAccess(lane: Int, _ access: ProviderAccess) {
        let now = ContinuousClock.now
        let name = configurations[lane].description.name
        let wasConnected = state.lanes[lane].isConnected
        lanes[lane].access = access
        switch access {
        case .granted(let byAnotherCredential):
            state.updateLane(lane) { $0.accessGranted() }
            if byAnotherCredential {
                state.credentialWasRead(lane: lane, isAnother: true, now: now)
                observer.credentialRead(name, isAnother: true)
                lanesToRetry.insert(lane)
                upkeepSignal.ring()
            }
            if !wasConnected && state.lanes[lane].isConnected {
                observer.laneUp(name)
                laneChanged()
            }
        case .awaited:
            break
        case .unavailable(let reason, let retryAt):
            state.updateLane(lane) { $0.accessLost(retryAt: retryAt, because: reason, at: now) }
            if wasConnected {
                let cause = state.lanes[lane].trouble?.reason ?? reason
                observer.laneDown(name, reason: cause, until: now.duration(to: retryAt))
                laneChanged()
            }
        case .refused(let outcome):
            // The pause says what it waits for, and its probe asks anew.
            state.updateLane(lane) { $0.accessGranted() }
            state.pause(lane: lane, status: outcome.status, reason: outcome.reason, now: now)
        }
    }

    /// An answer calls the token of its request too old.
    func replaceToken(lane: Int, mark: UInt8, because refusal: Outcome) {
        switch lanes[lane].replaceToken(mark, because: refusal, wallClock: wallClock()) {
        case .replaced:
            lanes[lane].restart()
        case .requested:
            noteAccess(lane: lane, .awaited)
        case .known:
            break
        case .refused:
            observer.freshTokenRefused(
                configurations[lane].description.name, status: refusal.status, reason: refusal.reason,
                clockAhead: refusal.providerTime.map { .seconds(wallClock() - $0) })
            state.pause(lane: lane, status: refusal.status, reason: refusal.reason, now: .now)
        }
    }
}
