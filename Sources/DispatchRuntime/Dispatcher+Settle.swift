import OutboxCore

#if CRASH_POINTS
    import CrashPoints
#endif

extension Dispatcher {
    /// Writes results until the worker has stopped and everything it held is settled or given up.
    func settleResults() async {
        while true {
            let now = ContinuousClock.now
            var flushes = takeUnwritten(at: now)
            flushes += state.takeFlushes(now: now, force: state.isDraining).map {
                UnwrittenFlush(slot: $0.slot, settlement: $0.settlement, at: now)
            }
            for flush in flushes { await write(flush) }
            await applyEffects()
            if state.isDraining && (state.isIdle && !isClaiming || hasGivenUp(at: .now)) { break }
            if flushes.isEmpty { await waitForResults() }
        }
        #if CRASH_POINTS
            CrashPoint.drained.reached()
        #endif
        isFinished = true
        upkeepSignal.ring()
    }

    private func waitForResults() async {
        let now = ContinuousClock.now
        if let flushAt = [state.nextFlushAt, unwritten.map(\.dueAt).min()].compactMap({ $0 }).min() {
            guard flushAt > now else { return }
            await settleSignal.wait(until: flushAt)
        } else {
            settleIsIdle = true
            await settleSignal.wait(until: min(now + .seconds(1), nextStepOfStop(after: now) ?? now + .seconds(1)))
            settleIsIdle = false
        }
        if isAborting(at: .now) { await abort() }
    }

    /// The stop timeout has passed: open requests are reset, which answers them all as unanswered.
    private func abort() async {
        guard state.inFlight > 0 else { return }
        #if CRASH_POINTS
            CrashPoint.aborting.reached()
        #endif
        for lane in lanes { await lane.close(within: .zero) }
    }

    /// Whether what is left is left to the lease: the database did not take it in time.
    private func hasGivenUp(at now: ContinuousClock.Instant) -> Bool {
        guard let abortsAt else { return false }
        return now >= abortsAt + Self.lastWrites
    }

    /// How long the database has, after requests were aborted, to take their results.
    private static let lastWrites = Duration.seconds(2)

    /// When a stop that goes on aborts its requests or, once it has, gives up; nil while the worker runs.
    private func nextStepOfStop(after now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        abortsAt.map { $0 > now ? $0 : $0 + Self.lastWrites }
    }

    /// Writes one flush. What fails is kept and repeated later, by itself: it never holds up the flushes of other
    /// leases.
    private func write(_ flush: UnwrittenFlush) async {
        do {
            let report = try await store.settle(flush.settlement)
            storeAnswered()
            finish(flush.settlement, slot: flush.slot, report)
        } catch {
            if error.kind == .incompatible {
                // It was carried out, and only its answer cannot be read: a repetition would say no more.
                observer.storeFailed(error)
                finish(
                    flush.settlement, slot: flush.slot, SettleReport(owned: true, ledgerRows: 0, returned: 0))
                return
            }
            failingLeases.insert(flush.settlement.batch)
            noteFailure(error, isNews: flush.failures == 0)
            unwritten.append(flush.failed(at: .now))
        }
    }

    private func takeUnwritten(at now: ContinuousClock.Instant) -> [UnwrittenFlush] {
        guard !unwritten.isEmpty else { return [] }
        let due = unwritten.filter { $0.dueAt <= now }
        unwritten.removeAll { $0.dueAt <= now }
        return due
    }

    private func finish(_ settlement: Settlement, slot: Int, _ report: SettleReport) {
        failingLeases.removeAll()
        if state.settled(slot: slot, report) {
            observer.fenced(batch: settlement.batch, rows: settlement.ledger.count)
        }
        if let refusal = report.refusal, !report.refused.isEmpty {
            observer.refused(batch: settlement.batch, rows: report.refused.count, because: refusal)
        }
        var outcomes: [OutcomeKind: Int] = [:]
        for row in settlement.ledger { outcomes[row.outcome.kind, default: 0] += 1 }
        observer.settled(
            batch: settlement.batch, outcomes: outcomes, returned: settlement.returns.count,
            ended: settlement.ends.count)
        if state.wantsWork(at: .now) { claimSignal.ring() }
    }

    /// Devices are told after the settle, in a statement of their own that waits for nobody.
    private func applyEffects() async {
        let effects = state.takeEffects(limit: settings.dispatch.settleRows)
        guard !effects.isEmpty else { return }
        await apply(effects[...])
    }

    private func apply(_ effects: ArraySlice<DeviceEffect>) async {
        do {
            let skipped = try await store.apply(Array(effects), maxFailures: settings.maxFailures)
            laterEffects.append(contentsOf: skipped.map { effects[effects.startIndex + $0] })
        } catch {
            guard error.kind == .content else {
                observer.storeFailed(error)
                laterEffects.append(contentsOf: effects)
                return
            }
            guard effects.count > 1 else {
                // Given up: the provider will say the same of this device with its next push.
                observer.storeFailed(error)
                return
            }
            let middle = effects.startIndex + effects.count / 2
            await apply(effects[..<middle])
            await apply(effects[middle...])
        }
    }
}
