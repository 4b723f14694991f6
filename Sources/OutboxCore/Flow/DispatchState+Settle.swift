extension DispatchState {
    /// Judges the end of one attempt: ledger row, fate of the target, effects on device and lane.
    package mutating func ended(_ attempt: AttemptResult, policy: RetryPolicy?, now: ContinuousClock.Instant) {
        let (claimed, lane) = claimed(in: attempt.tag.slot)
        let route = claimed.route
        lanes[lane].ended(route: route, at: now)
        let target = claimed.targets[attempt.tag.target]
        let dispatch = claimed.dispatch(ofTarget: attempt.tag.target)
        if target.isRetry { lanes[lane].retryEnded(attempt.budgetEnd) }
        let judgement = judge(
            attempt, of: dispatch, route: route, lane: lane, target: target, policy: policy, now: now)
        let row = judgement.outcome.map { outcome in
            ledgerRow(
                attempt.tag, claimed: claimed, outcome: outcome, disposition: judgement.disposition,
                attemptedAt: attempt.attemptedAt, answeredAt: attempt.answeredAt)
        }
        var effect: DeviceEffect?
        if let change = judgement.change, change != .succeeded || target.notesSuccess {
            effect = DeviceEffect(
                device: target.device, tokenSequence: target.tokenSequence, change: change,
                asOf: judgement.outcome?.deadSince ?? attempt.attemptedAt,
                notification: dispatch.notification)
        }
        batches[attempt.tag.slot]?.account(
            target: attempt.tag.target, judgement.disposition, row: row, effect: effect, at: now)
        // What answers a lease that others may have taken over is as late as its ledger row will be.
        let counts = batches[attempt.tag.slot]?.isSurelyOurs(at: now) ?? false
        if case .outcome(let outcome) = attempt.result, counts {
            learn(outcome, tokenMark: attempt.tag.tokenMark, lane: lane, route: route, now: now)
        }
    }

    private mutating func judge(
        _ attempt: AttemptResult, of dispatch: ClaimedDispatch, route: RouteNumber, lane: Int, target: ClaimedTarget,
        policy: RetryPolicy?, now: ContinuousClock.Instant
    ) -> Judgement {
        let facts = lanes[lane].facts(on: route, within: settings.proofWindow, at: now)
        let context = JudgementContext(
            spentAttempts: Int(target.spentAttempts), policy: policy ?? settings.retry,
            expiresAt: dispatch.expiresAt, now: clock.time(at: now),
            tokensMayBeCleared: facts.tokensMayBeCleared, laneIsHealthy: facts.isHealthy, pause: facts.pause,
            reconnectDelay: facts.reconnectDelay, jitter: random.fraction())
        return switch attempt.result {
        case .outcome(let outcome): Judgement.of(outcome, context)
        case .fault(let fault): Judgement.of(fault, context)
        }
    }

    mutating func ledgerRow(
        _ tag: AttemptTag, claimed: ClaimedBatch, outcome: Outcome, disposition: Disposition, attemptedAt: Timestamp,
        answeredAt: Timestamp?
    ) -> LedgerRow {
        let dispatch = claimed.dispatch(ofTarget: tag.target)
        let target = claimed.targets[tag.target]
        return LedgerRow(
            identifier: identifiers.next(at: attemptedAt, using: &random), notification: dispatch.notification,
            tenant: dispatch.share.tenant, device: target.device, tokenSequence: target.tokenSequence,
            attempt: dispatch.attempt, position: Int16(claimed.index(ofTarget: tag.target) + 1),
            outcome: outcome, isFinal: disposition.isFinal, retryAfter: disposition.wait, attemptedAt: attemptedAt,
            answeredAt: answeredAt)
    }

    // MARK: Flushes

    /// Flushes that are due: full, old enough, or all of them when `force` is set (draining, nothing else to do).
    package mutating func takeFlushes(
        now: ContinuousClock.Instant, force: Bool
    ) -> [(slot: Int, settlement: Settlement)] {
        var flushes: [(slot: Int, settlement: Settlement)] = []
        for slot in batches.indices {
            guard flushIsDue(slot, now: now, force: force), let settlement = batches[slot]?.beginFlush() else {
                continue
            }
            flushes.append((slot, settlement))
        }
        return flushes
    }

    private func flushIsDue(_ slot: Int, now: ContinuousClock.Instant, force: Bool) -> Bool {
        guard let batch = batches[slot], let since = batch.pendingSince, batch.writing == nil else { return false }
        return force || batch.openPositions == 0 || batch.pendingRows >= settings.settleRows
            || since.duration(to: now) >= settings.settleDelay
    }

    /// Whether a flush is due.
    package func hasDueFlush(at now: ContinuousClock.Instant) -> Bool {
        batches.indices.contains { flushIsDue($0, now: now, force: false) }
    }

    /// When the next flush is due by age; nil while nothing waits for one.
    package var nextFlushAt: ContinuousClock.Instant? {
        batches.lazy.compactMap { batch in batch?.writing == nil ? batch?.pendingSince : nil }.min()
            .map { $0 + settings.settleDelay }
    }

    /// A flush is in the database; answers whether it is the first news that the lease is no longer ours.
    package mutating func settled(slot: Int, _ report: SettleReport) -> Bool {
        guard let end = batches[slot]?.flushEnded(report) else { return false }
        effects.append(contentsOf: end.effects)
        finishIfDone(slot)
        return end.isNews
    }

    // MARK: Leases

    /// Leases that are to be renewed: a third of their length has passed. Not asked again before another third.
    package mutating func takeRenewals(now: ContinuousClock.Instant) -> [Identifier] {
        let due = batches.indices.filter { batches[$0].map { !$0.isLost && $0.renewAt <= now } ?? false }
        return due.map { slot in
            batches[slot]?.renewalAsked(at: now)
            return claimed(in: slot).batch.identifier
        }
    }

    /// When the next lease is to be renewed.
    package var nextRenewalAt: ContinuousClock.Instant? {
        batches.lazy.compactMap { batch in batch?.isLost == false ? batch?.renewAt : nil }.min()
    }

    /// Whether a lease has run out by our clock and may still be ours: the database was away, and what has been sent is
    /// not written yet. Recovering it now would send it again.
    package func holdsLapsedLease(at now: ContinuousClock.Instant) -> Bool {
        batches.contains { batch in batch.map { !$0.isLost && $0.leaseEnds <= now } ?? false }
    }

    /// A renewal sent at `askedAt` is answered: what was asked for and not extended is no longer ours.
    package mutating func renewed(
        _ asked: [Identifier], extended: [Identifier], askedAt: ContinuousClock.Instant
    ) {
        for slot in batches.indices {
            guard let batch = batches[slot], asked.contains(batch.claimed.identifier) else { continue }
            if extended.contains(batch.claimed.identifier) {
                batches[slot]?.renewed(askedAt: askedAt)
            } else if batch.openPositions > 0 || batch.writing != nil {
                batches[slot]?.lost()
            }
        }
    }

    // MARK: Effects and alarms

    /// Device effects of settled answers, at most `limit` at a time.
    package mutating func takeEffects(limit: Int) -> [DeviceEffect] {
        let taken = Array(effects.prefix(limit))
        effects.removeFirst(taken.count)
        return taken
    }

    /// Effects whose device was locked by somebody: tried again later.
    package mutating func returnEffects(_ again: [DeviceEffect]) {
        effects.append(contentsOf: again)
    }

    /// What operators and lanes have to be told.
    package mutating func takeAlarms() -> [LaneAlarm] {
        defer { alarms.removeAll() }
        return alarms
    }
}
