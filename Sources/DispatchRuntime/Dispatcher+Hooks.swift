import EventLoop
import OutboxCore

extension Dispatcher {
    /// Begins the calls of hooks that may begin; each is a task of its own, for what it waits for is the app.
    func askHooks(at now: ContinuousClock.Instant) {
        while let call = state.nextHookCall(now: now) {
            Task(executorPreference: loop) { await self.ask(call) }
        }
    }

    private func ask(_ call: HookCall) async {
        let askedAt = ContinuousClock.now
        let lanes = Set(call.parts.compactMap { state.batch($0.slot)?.lane })
        do throws(HookFault) {
            let replies = try await store.ask(call.hooks, about: call.notifications)
            let verdicts = try HookVerdicts(replies, asked: call.notifications)
            let answeredAt = ContinuousClock.now
            var conditions: [HookConditions] = []
            for part in call.parts { conditions.append(await checkConditions(part, of: call)) }
            tell(
                state.hooksAnswered(
                    call, verdicts, conditions: conditions, askedAt: askedAt, answeredAt: answeredAt, now: .now))
        } catch {
            tell(state.hooksFailed(call, error, now: .now))
        }
        for lane in lanes.sorted() { pump(lane) }
        askHooks(at: .now)
        // A lane that had no row to send may have let the claims rest.
        if state.wantsWork(at: .now) { claimSignal.ring() }
    }

    /// The facts of the claim again, where the last check of them has grown too old while the hooks were asked.
    private func checkConditions(_ part: HookCall.Part, of call: HookCall) async -> HookConditions {
        let askedAt = ContinuousClock.now
        guard let check = state.conditionsToCheck(part, of: call, now: askedAt) else { return .young }
        do {
            let reasons = try await store.recheck(check.targets, batch: check.batch, route: check.route)
            storeAnswered()
            return .answered(reasons, askedAt: askedAt)
        } catch {
            observer.storeFailed(error)
            return .failed
        }
    }

    func tell(_ alarm: HookAlarm?) {
        switch alarm {
        case .failing(let kind, let fault, let wait):
            observer.hooksFail(kind: kind, fault, askedAgainAfter: wait)
            laneChanged()
        case .answers(let kind, let duration):
            observer.hooksAnswer(kind: kind, after: duration)
            laneChanged()
        case nil: break
        }
    }
}
