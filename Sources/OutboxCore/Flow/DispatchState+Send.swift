extension DispatchState {
    /// The next step of a lane: it sends while its transport has room, oldest lease first, and only what cannot outlive
    /// its lease and was checked lately.
    package mutating func nextStep(ofLane lane: Int, now: ContinuousClock.Instant) -> SendStep {
        guard !isDraining, lanes[lane].isOpen(at: now) else {
            // Nothing waits on lease for a lane that cannot send: somebody else may be able to, or a deadline may pass.
            let opensAt = isDraining ? nil : lanes[lane].opensAt(after: now)
            releaseUnsent(ofLane: lane, after: opensAt.map { now.duration(to: $0) } ?? .zero, at: now)
            return .none
        }
        if !hookedSlots[lane].isEmpty, let step = nextHookedStep(ofLane: lane, now: now) { return step }
        while let slot = sending[lane].first(where: { batches[$0]?.isChecking == false }) {
            guard batches[slot]?.unsent.isEmpty == false else {
                sending[lane].removeAll { $0 == slot }
                finishIfDone(slot)
                continue
            }
            guard mayStillSend(slot, now: now) else {
                releaseUnsent(slot: slot, after: .zero, at: now)
                continue
            }
            let route = route(of: slot)
            guard lanes[lane].isOpen(route, at: now) else {
                let opensAt = lanes[lane].opensAt(route, after: now)
                releaseUnsent(slot: slot, after: opensAt.map { now.duration(to: $0) } ?? .zero, at: now)
                continue
            }
            let room = lanes[lane].room(for: route, at: now)
            guard room > 0 else { return .none }
            if checkIsTooOld(slot, now: now) {
                batches[slot]?.checkBegan()
                return .check(slot: slot, targets: batches[slot]?.unsent ?? [])
            }
            let targets = takeWithinBudget(room, slot: slot, lane: lane, now: now)
            guard !targets.isEmpty else { continue }
            lanes[lane].sent(targets.count, route: route)
            return .send(slot: slot, targets: targets)
        }
        return .none
    }

    func route(of slot: Int) -> RouteNumber {
        batches[slot]?.claimed.route ?? -1
    }

    /// Takes targets for sending; retries beyond the lane's budget go back with nothing spent.
    private mutating func takeWithinBudget(
        _ limit: Int, slot: Int, lane: Int, now: ContinuousClock.Instant
    ) -> ArraySlice<Int32> {
        withinBudget(batches[slot]?.take(limit) ?? [], slot: slot, lane: lane, now: now)
    }

    /// Of targets that were taken for sending, those that may be sent.
    mutating func withinBudget(
        _ taken: ArraySlice<Int32>, slot: Int, lane: Int, now: ContinuousClock.Instant
    ) -> ArraySlice<Int32> {
        guard batches[slot]?.hasRetries == true else {
            lanes[lane].sendsFirst(taken.count)
            return taken
        }
        var sent: [Int32] = []
        for target in taken {
            if batches[slot]?.isRetry(Int(target)) == false {
                lanes[lane].sendsFirst(1)
                sent.append(target)
            } else if lanes[lane].maySendRetry(at: now) {
                sent.append(target)
            } else {
                let wait = lanes[lane].retryWait(at: now)
                batches[slot]?.account(target: Int(target), .release(wait), row: nil, at: now)
            }
        }
        return sent[...]
    }

    /// Whether a request sent now would end before its lease.
    func mayStillSend(_ slot: Int, now: ContinuousClock.Instant) -> Bool {
        guard let batch = batches[slot] else { return false }
        return !batch.isLost && now + settings.requestTimeout <= batch.leaseEnds
    }

    private func checkIsTooOld(_ slot: Int, now: ContinuousClock.Instant) -> Bool {
        guard let batch = batches[slot] else { return false }
        return now > batch.checkHoldsUntil
    }

    /// Whether the deadline of a target's notification still lies ahead of `time`.
    package func isInTime(_ tag: AttemptTag, at time: Timestamp) -> Bool {
        guard let dispatch = batches[tag.slot]?.claimed.dispatch(ofTarget: tag.target) else { return false }
        return time < dispatch.expiresAt
    }

    /// A target was not sent because its deadline passed while it waited.
    package mutating func expired(_ tag: AttemptTag, now: ContinuousClock.Instant) {
        let (claimed, lane) = claimed(in: tag.slot)
        lanes[lane].ended(route: claimed.route, at: now)
        if claimed.targets[tag.target].isRetry { lanes[lane].retryEnded(.unsent) }
        fallOut(tag, .expired, now: now)
    }

    /// A re-check of a lease's unsent targets, sent at `askedAt`, is answered: a reason for each that fell out. Nil
    /// when it failed.
    package mutating func checked(
        slot: Int, reasons: [SettlementReason?]?, askedAt: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) {
        guard batches[slot] != nil else { return }
        batches[slot]?.checkEnded(askedAt: reasons == nil ? nil : askedAt, at: now)
        guard let reasons, !isDraining else {
            // Nothing is let through unchecked: the rows wait in the queue until the database answers again.
            releaseUnsent(slot: slot, after: reasons == nil ? settings.recheckAfter : .zero, at: now)
            return
        }
        let unsent = batches[slot]?.take(.max) ?? []
        precondition(reasons.count == unsent.count, "a re-check answers every unsent target")
        var standing: [Int32] = []
        for (target, reason) in zip(unsent, reasons) {
            if let reason {
                fallOut(AttemptTag(slot: slot, target: Int(target)), reason, now: now)
            } else {
                standing.append(target)
            }
        }
        batches[slot]?.keepUnsent(standing)
        // A hook that was set meanwhile is asked too.
        if !hookedKindNumbers.isEmpty { setAside(slot: slot, at: now) }
    }

    /// What a target that fell out says about its notification: the end of all of it, of this route, or of the target.
    mutating func fallOut(_ tag: AttemptTag, _ reason: SettlementReason, now: ContinuousClock.Instant) {
        let row = ledgerRow(
            tag, claimed: claimed(in: tag.slot).batch, outcome: Outcome(.skipped, reason: reason.rawValue),
            disposition: .final,
            attemptedAt: clock.time(at: now), answeredAt: nil)
        switch reason {
        case .superseded, .seen, .noAccess:
            batches[tag.slot]?.accountEnd(
                target: tag.target, status: .superseded, reason: reason, row: row, at: now)
        case .erased, .cancelled:
            batches[tag.slot]?.accountEnd(
                target: tag.target, status: .cancelled, reason: reason, row: row, at: now)
        case .expired:
            batches[tag.slot]?.accountEnd(target: tag.target, status: .expired, reason: reason, row: row, at: now)
        default:
            batches[tag.slot]?.account(target: tag.target, .final, row: row, at: now)
        }
    }

    /// The kind of a target's notification; nil when its lease is unknown.
    package mutating func kind(of tag: AttemptTag) -> KindNumber? {
        batches[tag.slot]?.origin().batch.dispatch(ofTarget: tag.target).kind
    }

    /// Puts what a lease has not sent back into the queue, without a trace on the ledger.
    mutating func releaseUnsent(slot: Int, after delay: Duration, at now: ContinuousClock.Instant) {
        for target in batches[slot]?.take(.max) ?? [] {
            batches[slot]?.account(target: Int(target), .release(delay), row: nil, at: now)
        }
    }

    /// Puts everything back that a lane (or one topic of it) has claimed and not sent. What is being checked again goes
    /// back with the answer. Answers how many targets that were.
    @discardableResult
    mutating func releaseUnsent(
        ofLane lane: Int, route: RouteNumber? = nil, after delay: Duration, at now: ContinuousClock.Instant
    ) -> Int {
        var released = 0
        for slot in sending[lane] where batches[slot]?.isChecking == false {
            guard route == nil || self.route(of: slot) == route else { continue }
            released += batches[slot]?.unsent.count ?? 0
            releaseUnsent(slot: slot, after: delay, at: now)
        }
        sending[lane].removeAll { slot in batches[slot].map { $0.unsent.isEmpty } ?? true }
        for slot in hookedSlots[lane] where route == nil || self.route(of: slot) == route {
            released += releaseHooked(slot: slot, after: delay, at: now)
        }
        return released
    }
}
