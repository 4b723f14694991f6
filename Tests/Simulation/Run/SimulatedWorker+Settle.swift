// swift-format-ignore-file: OnlyOneTrailingClosureArgument
// What a statement does is a closure, and what comes after its answer is the one that trails: it reads as an await.

import OutboxCore

/// Writes results until nothing is left of them: `Dispatcher.settleResults`.
extension SimulatedWorker {
    func settleTurn() {
        let now = now
        let due = unwritten.filter { $0.dueAt <= now }
        unwritten.removeAll { $0.dueAt <= now }
        let flushes =
            due
            + state.takeFlushes(now: now, force: state.isDraining).map {
                UnwrittenFlush(slot: $0.slot, settlement: $0.settlement, at: now)
            }
        write(flushes[...]) { [self] in
            applyEffects { [self] in
                if state.isDraining && (state.isIdle && !isClaiming || hasGivenUp) {
                    isFinished = true
                    return upkeepSignal.ring()
                }
                if flushes.isEmpty { waitForResults() } else { settleTurn() }
            }
        }
    }

    private var hasGivenUp: Bool { abortsAt.map { now >= $0 + .seconds(2) } ?? false }

    private var nextStepOfStop: ContinuousClock.Instant? {
        abortsAt.map { $0 > now ? $0 : $0 + .seconds(2) }
    }

    private func waitForResults() {
        let goOn = { [self] in
            settleIsIdle = false
            if let abortsAt, abortsAt <= now { abort() }
            settleTurn()
        }
        if let flushAt = [state.nextFlushAt, unwritten.map(\.dueAt).min()].compactMap({ $0 }).min() {
            guard flushAt > now else { return soon(goOn) }
            settleSignal.wait(until: flushAt, goOn)
        } else {
            settleIsIdle = true
            settleSignal.wait(until: min(now + .seconds(1), nextStepOfStop ?? now + .seconds(1)), goOn)
        }
    }

    private func write(_ flushes: ArraySlice<UnwrittenFlush>, _ then: @escaping () -> Void) {
        guard let flush = flushes.first else { return then() }
        let owner = owner
        simulation.note(
            index, "settles", flush.settlement.leaving.count, flush.settlement.ledger.count, describe(flush))
        ask(.settle, { $0.settle(flush.settlement, owner: owner) }) { [self] answer in
            switch answer {
            case .success(let report):
                if report.isFenced { simulation.monitor.fenced += 1 }
                _ = state.settled(slot: flush.slot, report)
                simulation.note(index, "settled", report.owned ? 1 : 0, report.ledgerRows)
                if state.wantsWork(at: now) { claimSignal.ring() }
            case .failure:
                if defect == .forgetsFailedFlush {
                    _ = state.settled(slot: flush.slot, SettleReport(owned: true, ledgerRows: 0, returned: 0))
                } else {
                    unwritten.append(flush.failed(at: now))
                }
            }
            write(flushes.dropFirst(), then)
        }
    }

    private func describe(_ flush: UnwrittenFlush) -> String {
        let rows = state.batch(flush.slot)?.claimed.dispatches ?? []
        func name(_ position: Int16) -> String {
            rows.indices.contains(Int(position) - 1)
                ? simulation.monitor.name(rows[Int(position) - 1].notification, simulation.store) : "?"
        }
        let settlement = flush.settlement
        let ledger = settlement.ledger.map { row in
            let wait = row.retryAfter.map { " for \($0.wholeMicroseconds / 1000) ms" } ?? ""
            return "\(name(row.position)) device \(row.device) \(row.outcome.kind.name)\(row.isFinal ? " final" : wait)"
        }
        let returns = settlement.returns.map { row in
            "\(name(row.position)) back in \(row.delay.wholeMicroseconds / 1000) ms after \(row.cursor.rawValue)"
        }
        let ends = settlement.ends.map { "\(name($0.position)) \($0.status.name) \($0.reason.rawValue)" }
        return (ledger + returns + ends + ["leaving \(settlement.leaving.map(name))"]).joined(separator: "; ")
    }

    private func applyEffects(_ then: @escaping () -> Void) {
        let effects = state.takeEffects(limit: simulation.plan.settings.settleRows)
        guard !effects.isEmpty else { return then() }
        let maxFailures = simulation.plan.maxFailures
        let run = { (simulation: Simulation) -> Result<[Int], StoreError> in
            simulation.monitor.applied(effects, simulation.store)
            return .success(simulation.store.apply(effects, maxFailures: maxFailures))
        }
        simulation.ask(self, .effects, run) { [self] answer in
            switch answer {
            case .success(let locked): laterEffects += locked.map { effects[$0] }
            case .failure: laterEffects += effects
            }
            then()
        }
    }

    /// The stop timeout has passed: open requests end without an answer.
    private func abort() {
        for lane in lanes.indices {
            for request in lanes[lane].takeAll() {
                end(request, .fault(.unanswered(reason: "closed")), answeredAt: nil)
            }
        }
    }

    func ringSettle() {
        if settleIsIdle || state.hasDueFlush(at: now) { settleSignal.ring() }
    }
}
