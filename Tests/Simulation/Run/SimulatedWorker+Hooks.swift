// swift-format-ignore-file: OnlyOneTrailingClosureArgument
// What a statement does is a closure, and what comes after its answer is the one that trails: it reads as an await.

import OutboxCore

/// Asks the app's hooks before rows of their kind are sent: `Dispatcher.askHooks`.
extension SimulatedWorker {
    /// A call on its way: when it was sent, for which rows, and which lanes go on with its answer.
    private struct Question {
        let call: HookCall
        let askedAt: ContinuousClock.Instant
        let lanes: Set<Int>
        /// The leases of the call's parts; their slots may be others' when the answer comes.
        let leases: [ClaimedBatch]
    }

    /// What a call came to, and which of the notifications the app really let through.
    private typealias Answer = (verdicts: HookVerdicts, allowed: Set<Identifier>)

    func askHooks() {
        while let call = state.nextHookCall(now: now) { ask(call) }
    }

    private func ask(_ call: HookCall) {
        let leases = call.parts.compactMap { state.batch($0.slot) }
        let question = Question(
            call: call, askedAt: now, lanes: Set(leases.map(\.lane)), leases: leases.map(\.claimed))
        let occasion = nextOccasion()
        simulation.note(index, "asks hooks", call.notifications.count, call.parts.count)
        simulation.ask(self, .askHooks, { [index] in .success($0.askHooks(call, index, occasion)) }) { [self] replied in
            guard simulation.dice.strikes(.hookHangs, index, occasion) else {
                return heard(judge(replied, of: call), to: question)
            }
            let timeout = call.hooks.first?.timeout.wholeMicroseconds ?? 0
            simulation.schedule(after: timeout, worker: self) { [self] in
                heard(.failure(HookFault(call.hooks.first?.purpose, .timeout)), to: question)
            }
        }
    }

    private func judge(_ replied: Result<HookReplies, StoreError>, of call: HookCall) -> Result<Answer, HookFault> {
        replied.mapError { _ in HookFault(nil, .unreachable) }.flatMap { replied in
            Result { () throws(HookFault) in
                (try HookVerdicts(try replied.replies.get(), asked: call.notifications), replied.allowed)
            }
        }
    }

    private func heard(_ answer: Result<Answer, HookFault>, to question: Question) {
        switch answer {
        case .failure(let fault):
            simulation.note(index, "hooks fail", 0, 0, fault.text)
            failed(question, fault)
            goOn(question.lanes)
        case .success(let answer):
            let answeredAt = now
            checkConditions(question.call.parts[...], of: question.call, []) { [self] conditions in
                answered(question, answer, conditions, answeredAt: answeredAt)
                goOn(question.lanes)
            }
        }
    }

    private func failed(_ question: Question, _ fault: HookFault) {
        simulation.monitor.passed(.hooksFailed)
        if defect == .believesFailedHooks, let verdicts = try? HookVerdicts([], asked: []) {
            _ = state.hooksAnswered(
                question.call, verdicts, conditions: question.call.parts.map { _ in .young },
                askedAt: question.askedAt, answeredAt: now, now: now)
        } else {
            _ = state.hooksFailed(question.call, fault, now: now)
        }
    }

    private func answered(
        _ question: Question, _ answer: Answer, _ conditions: [HookConditions], answeredAt: ContinuousClock.Instant
    ) {
        let recheckAfter = simulation.plan.settings.recheckAfter
        for (index, claimed) in question.leases.enumerated() {
            let part = question.call.parts[index]
            if case .answered(_, let askedAt) = conditions[index] {
                hookChecks[claimed.identifier] = askedAt + recheckAfter
            }
            let checkedUntil = [checks[part.slot], hookChecks[claimed.identifier]].compactMap { $0 }.max() ?? now
            let until = max(min(question.askedAt + recheckAfter, checkedUntil), now + .milliseconds(50))
            let targets = part.targets.map { target in
                (claimed.dispatch(ofTarget: Int(target)).notification, claimed.targets[Int(target)].device)
            }
            simulation.monitor.hooksAnswered(claimed.identifier, targets, allowed: answer.allowed, until: until)
        }
        simulation.monitor.passed(.hooksAnswered)
        _ = state.hooksAnswered(
            question.call, answer.verdicts, conditions: conditions, askedAt: question.askedAt, answeredAt: answeredAt,
            now: now)
    }

    private func goOn(_ lanes: Set<Int>) {
        for lane in lanes.sorted() { pump(lane) }
        askHooks()
        if state.wantsWork(at: now) { claimSignal.ring() }
    }

    /// The facts of the claim again, part after part, where the last check of them has grown too old.
    private func checkConditions(
        _ parts: ArraySlice<HookCall.Part>, of call: HookCall, _ known: [HookConditions],
        _ then: @escaping ([HookConditions]) -> Void
    ) {
        guard let part = parts.first else { return then(known) }
        let (askedAt, owner) = (now, owner)
        guard let check = state.conditionsToCheck(part, of: call, now: askedAt) else {
            return checkConditions(parts.dropFirst(), of: call, known + [.young], then)
        }
        simulation.ask(
            self, .recheck,
            { $0.recheck(check.targets, batch: check.batch, owner: owner, route: check.route) },
            then: { [self] answer in
                var condition = HookConditions.failed
                if case .success(let reasons) = answer {
                    simulation.monitor.checked(check.batch, check.targets, reasons)
                    condition = .answered(reasons, askedAt: askedAt)
                }
                checkConditions(parts.dropFirst(), of: call, known + [condition], then)
            })
    }
}

/// What a call of hooks was answered, and which of the notifications the app really let through.
private typealias HookReplies = (replies: Result<[HookReply], HookFault>, allowed: Set<Identifier>)

extension Simulation {
    /// Carries out a re-check; it is refused when the lease is not the owner's any more.
    func recheck(
        _ targets: [RecheckTarget], batch: Identifier, owner: Identifier, route: RouteNumber
    ) -> Result<[SettlementReason?], StoreError> {
        guard let reasons = store.recheck(targets, batch: batch, owner: owner, route: route) else {
            return .failure(StoreError(kind: .refused, operation: "recheck", message: "the lease is gone"))
        }
        return .success(reasons)
    }

    /// Carries out a call of hooks, as well or as badly as the app does it.
    fileprivate func askHooks(
        _ call: HookCall, _ worker: Int, _ occasion: Int
    ) -> HookReplies {
        var app = store.app
        if dice.strikes(.hookRaises, worker, occasion) { app.raises = call.hooks.first?.purpose }
        if dice.strikes(.hookMixesUp, worker, occasion) { app.mixesUp = call.hooks.last?.purpose }
        let sound = store.app
        defer { store.app = sound }
        store.app = app
        let replies = Result { () throws(HookFault) in try store.ask(call.hooks, about: call.notifications) }
        // Who fails, or mixes rows up, has let nothing through.
        guard app.raises == nil, app.mixesUp == nil else { return (replies, []) }
        let purposes = call.hooks.map(\.purpose)
        let allowed = call.notifications.filter { identifier in
            guard let row = store.notification(identifier) else { return false }
            let isOver = purposes.contains(.stale) && sound.names(row, for: .stale)
            let isBarred = purposes.contains(.access) && !(row.isVisible && sound.names(row, for: .access))
            if isOver { monitor.passed(.staleByHook) } else if isBarred { monitor.passed(.noAccessByHook) }
            return !isOver && !isBarred
        }
        return (replies, Set(allowed))
    }
}
