import OutboxCore

extension Dispatcher {
    /// Writes results until the worker has stopped and everything it held is settled or given up.
    func settleResults() async {
        while true {
            let now = ContinuousClock.now
            let flushes = state.takeFlushes(now: now, force: state.isDraining)
            for flush in flushes { await write(flush.settlement, slot: flush.slot) }
            await applyEffects()
            if state.isDraining && (state.isIdle && !isClaiming || hasGivenUp(at: .now)) { break }
            if flushes.isEmpty { await waitForResults() }
        }
        isFinished = true
        upkeepSignal.ring()
    }

    private func waitForResults() async {
        let now = ContinuousClock.now
        if let flushAt = state.nextFlushAt {
            guard flushAt > now else { return }
            await settleSignal.wait(until: flushAt)
        } else {
            settleIsIdle = true
            await settleSignal.wait(until: min(now + .seconds(1), abortsAt ?? now + .seconds(1)))
            settleIsIdle = false
        }
        if isAborting(at: .now) { await abort() }
    }

    /// The stop timeout has passed: open requests are reset, which answers them all as unanswered.
    private func abort() async {
        guard state.inFlight > 0 else { return }
        for lane in lanes { await lane.close(within: .zero) }
    }

    /// Whether what is left is left to the lease: the database did not take it in time.
    private func hasGivenUp(at now: ContinuousClock.Instant) -> Bool {
        guard let abortsAt else { return false }
        return now > abortsAt + .seconds(2)
    }

    /// Writes one flush, again and again until the database has it: the statement may be repeated.
    private func write(_ settlement: Settlement, slot: Int) async {
        var failures = 0
        while true {
            do {
                let report = try await store.settle(settlement)
                storeAnswered(at: nil)
                finish(settlement, slot: slot, report)
                return
            } catch {
                await storeFailed(error, attempt: failures)
                failures += 1
                if hasGivenUp(at: .now) { return }
            }
        }
    }

    private func finish(_ settlement: Settlement, slot: Int, _ report: SettleReport) {
        if state.settled(slot: slot, report) {
            observer.fenced(batch: settlement.batch, rows: settlement.ledger.count)
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
        do {
            let skipped = try await store.apply(effects)
            laterEffects.append(contentsOf: skipped.map { effects[$0] })
        } catch {
            observer.storeFailed(error)
            laterEffects.append(contentsOf: effects)
        }
    }
}
