extension DispatchState {
    /// Most calls of hooks that are under way at one time, of as many kinds.
    package static let hookCallLimit = 4
    /// Of these, most for kinds whose last call failed: those that hang leave room for the others.
    static let failingCallLimit = 2
    /// Most notifications that one call asks about, unless a lease has more of one kind.
    static let rowsPerHookCall = 1000
    /// Most targets of one kind that are held while its hooks are asked.
    private static let hookedTargetLimit = 2000

    // MARK: The catalog

    /// The catalog was read: these hooks are asked from now on, about what is held and not sent as well. Answers
    /// whose failure is over because the hooks are gone.
    package mutating func setHooks(
        _ hooks: [KindHook], kinds: some Sequence<Kind>, now: ContinuousClock.Instant
    ) -> [HookAlarm] {
        guard !(hooks.isEmpty && hookedKinds.isEmpty) else { return [] }
        let byName = Dictionary(grouping: hooks, by: \.kind)
        for name in byName.keys.sorted() where !hookedKinds.contains(where: { $0.name == name }) {
            hookedKinds.append(HookedKind(name: name, hooks: []))
        }
        var alarms: [HookAlarm] = []
        for index in hookedKinds.indices {
            hookedKinds[index].hooks = byName[hookedKinds[index].name] ?? []
            guard hookedKinds[index].hooks.isEmpty else { continue }
            for slot in hookedSlots.joined() { releaseHooked(slot: slot, kind: index, after: .zero, at: now) }
            if let duration = hookedKinds[index].forgetFailure(at: now) {
                alarms.append(.answers(kind: hookedKinds[index].name, after: duration))
            }
        }
        let before = hookedKindNumbers
        hookedKindNumbers = [:]
        for kind in kinds {
            let index = hookedKinds.firstIndex { $0.name == kind.name && !$0.hooks.isEmpty }
            if let index { hookedKindNumbers[kind.number] = index }
        }
        if hookedKindNumbers != before {
            for slot in batches.indices where batches[slot]?.isChecking == false { setAside(slot: slot, at: now) }
        }
        return alarms
    }

    /// Takes the hooked rows of a lease apart. Those whose hooks fail go back at once, and so do those for which there
    /// is no room.
    mutating func setAside(slot: Int, at now: ContinuousClock.Instant) {
        let known = batches[slot]?.hooked.count ?? 0
        guard batches[slot]?.setAsideHooked(hookedKindNumbers) == true, let lane = batches[slot]?.lane else { return }
        if !hookedSlots[lane].contains(slot) { hookedSlots[lane].append(slot) }
        for part in (batches[slot]?.hooked[known...] ?? []) {
            if let failure = hookedKinds[part.kind].failure, failure.retryAt > now {
                releaseHooked(slot: slot, kind: part.kind, after: now.duration(to: failure.retryAt), at: now)
                continue
            }
            let others = heldTargets(ofKind: part.kind) - part.targets.count
            guard others > 0, others + part.targets.count > hookedTargetLimit(ofLane: lane, at: now) else { continue }
            let wait = hookedKinds[part.kind].turnAway(part.targets.count, behind: others, at: now)
            releaseHooked(slot: slot, waitingOf: part.kind, after: wait, at: now)
        }
        hooksMayBeAsked = true
    }

    /// No more are held than the lane sends at once and in the time of a look ahead, twice over: what it has no room
    /// for when the answer comes would have to be asked about again.
    private func hookedTargetLimit(ofLane lane: Int, at now: ContinuousClock.Instant) -> Int {
        min(Self.hookedTargetLimit, 2 * (lanes[lane].room(at: now) + lanes[lane].lookAhead))
    }

    /// Targets of a kind that wait for its hooks, or are being asked about.
    private func heldTargets(ofKind kind: Int) -> Int {
        hookedSlots.joined().reduce(0) { sum, slot in
            (batches[slot]?.hooked ?? []).reduce(sum) { $0 + ($1.kind == kind && !$1.isClear ? $1.targets.count : 0) }
        }
    }

    // MARK: Asking

    /// The next call of hooks that may begin; nil when there is none. Kinds take turns; each has one call at a time.
    package mutating func nextHookCall(now: ContinuousClock.Instant) -> HookCall? {
        guard hooksMayBeAsked else { return nil }
        let running = hookedKinds.count { $0.isAsking }
        guard !isDraining, running < Self.hookCallLimit else { return nil }
        let failing = hookedKinds.count { $0.isAsking && $0.failure != nil }
        for offset in hookedKinds.indices {
            let kind = (hookTurn + offset) % hookedKinds.count
            guard hookedKinds[kind].mayBeAsked(at: now),
                hookedKinds[kind].failure == nil || failing < Self.failingCallLimit,
                let call = makeCall(ofKind: kind)
            else { continue }
            hookTurn = kind + 1
            hookedKinds[kind].isAsking = true
            return call
        }
        // Asked again when rows come, when an answer grows old, and when a call ends.
        hooksMayBeAsked = false
        return nil
    }

    private mutating func makeCall(ofKind kind: Int) -> HookCall? {
        var notifications: [Identifier] = []
        var parts: [HookCall.Part] = []
        hookCalls += 1
        for slot in hookedSlots.joined() {
            guard let batch = batches[slot] else { continue }
            for (index, part) in batch.hooked.enumerated() where part.kind == kind && part.stage == .waiting {
                let more = batch.notifications(of: part.targets)
                guard parts.isEmpty || notifications.count + more.count <= Self.rowsPerHookCall else { continue }
                notifications += more
                parts.append(HookCall.Part(slot: slot, targets: Array(part.targets)))
                batches[slot]?.hookAsked(index, call: hookCalls)
            }
        }
        guard !parts.isEmpty else { return nil }
        return HookCall(
            number: hookCalls, hooks: hookedKinds[kind].hooks, notifications: notifications, parts: parts, kind: kind)
    }

    /// The rows of a part of a call, to be checked again by the facts that the claim evaluated, since the last check
    /// of them has grown too old; nil when it has not, or when they do not wait for the call any more.
    package mutating func conditionsToCheck(
        _ part: HookCall.Part, of call: HookCall, now: ContinuousClock.Instant
    ) -> (batch: Identifier, route: RouteNumber, targets: [RecheckTarget])? {
        guard let rows = rows(part, of: call), now > rows.conditionsHoldUntil else { return nil }
        let claimed = claimed(in: part.slot).batch
        let targets = part.targets.map { target in
            let device = claimed.targets[Int(target)]
            return RecheckTarget(
                notification: claimed.dispatch(ofTarget: Int(target)).notification, device: device.device,
                tokenSequence: device.tokenSequence)
        }
        return (claimed.identifier, claimed.route, targets)
    }

    private func index(_ part: HookCall.Part, of call: HookCall) -> Int? {
        batches[part.slot]?.hooked.firstIndex {
            $0.stage == .asking(call: call.number) && $0.targets.first == part.targets.first
        }
    }

    private func rows(_ part: HookCall.Part, of call: HookCall) -> HookedRows? {
        index(part, of: call).flatMap { batches[part.slot]?.hooked[$0] }
    }

    // MARK: Answers

    /// A call that was sent at `askedAt` is answered at `answeredAt`; `conditions` has what came of the facts of each
    /// part since. What falls out has its end, what stands may be sent.
    package mutating func hooksAnswered(
        _ call: HookCall, _ verdicts: HookVerdicts, conditions: [HookConditions], askedAt: ContinuousClock.Instant,
        answeredAt: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) -> HookAlarm? {
        precondition(conditions.count == call.parts.count, "a call's answer covers each of its parts")
        hooksMayBeAsked = true
        hookedKinds[call.kind].isAsking = false
        for (part, conditions) in zip(call.parts, conditions) {
            settle(part, of: call, verdicts, conditions, askedAt: askedAt, now: now)
        }
        let duration = hookedKinds[call.kind].answered(
            rows: call.notifications.count, in: askedAt.duration(to: answeredAt), at: now)
        return duration.map { .answers(kind: hookedKinds[call.kind].name, after: $0) }
    }

    private mutating func settle(
        _ part: HookCall.Part, of call: HookCall, _ verdicts: HookVerdicts, _ conditions: HookConditions,
        askedAt: ContinuousClock.Instant, now: ContinuousClock.Instant
    ) {
        guard let index = index(part, of: call), let rows = rows(part, of: call) else { return }
        var reasons: [SettlementReason?] = []
        var holdUntil = rows.conditionsHoldUntil
        switch conditions {
        case .young: break
        case .failed:
            releaseHooked(slot: part.slot, part: index, after: settings.recheckAfter, at: now)
            return
        case .answered(let answered, let checkedAt):
            precondition(answered.count == part.targets.count, "a re-check answers every target")
            reasons = answered
            holdUntil = checkedAt + settings.recheckAfter
        }
        let claimed = claimed(in: part.slot).batch
        var standing: [Int32] = []
        for (place, target) in part.targets.enumerated() {
            let notification = claimed.dispatch(ofTarget: Int(target)).notification
            let fact = reasons.isEmpty ? nil : reasons[place]
            if let reason = fact ?? verdicts.reason(for: notification) {
                fallOut(AttemptTag(slot: part.slot, target: Int(target)), reason, now: now)
            } else {
                standing.append(target)
            }
        }
        batches[part.slot]?.hooked[index].conditionsHoldUntil = holdUntil
        let until = max(min(askedAt + settings.recheckAfter, holdUntil), now + LeasedBatch.checkGrace)
        batches[part.slot]?.clear(index, standing, until: until)
        if standing.isEmpty { batches[part.slot]?.hooked.remove(at: index) }
    }

    /// A call failed: its rows, and all others of its kind that wait, go back unsent. Nothing is let through. An alarm
    /// for the first failure in a row.
    package mutating func hooksFailed(
        _ call: HookCall, _ fault: HookFault, now: ContinuousClock.Instant
    ) -> HookAlarm? {
        hooksMayBeAsked = true
        hookedKinds[call.kind].isAsking = false
        guard !hookedKinds[call.kind].hooks.isEmpty, !isDraining else { return nil }
        let isNews = hookedKinds[call.kind].failure == nil
        let wait = hookedKinds[call.kind].failed(fault, fraction: random.fraction(), at: now)
        for slot in hookedSlots.joined() {
            releaseHooked(slot: slot, waitingOf: call.kind, after: wait, at: now)
            releaseHooked(slot: slot, kind: call.kind, after: wait, at: now) { $0.stage == .asking(call: call.number) }
        }
        return isNews ? .failing(kind: hookedKinds[call.kind].name, fault, retryAfter: wait) : nil
    }

    // MARK: Sending

    /// The next send of rows that hooks have let through; those whose answer has grown too old are asked about again.
    mutating func nextHookedStep(ofLane lane: Int, now: ContinuousClock.Instant) -> SendStep? {
        for slot in hookedSlots[lane] {
            guard batches[slot]?.hooked.isEmpty == false else { continue }
            guard mayStillSend(slot, now: now) else {
                releaseHooked(slot: slot, after: .zero, at: now)
                continue
            }
            let route = route(of: slot)
            guard lanes[lane].isOpen(route, at: now) else {
                let opensAt = lanes[lane].opensAt(route, after: now)
                releaseHooked(slot: slot, after: opensAt.map { now.duration(to: $0) } ?? .zero, at: now)
                continue
            }
            lapseAnswers(slot: slot, now: now)
            let room = lanes[lane].room(for: route, at: now)
            guard room > 0, let part = batches[slot]?.hooked.firstIndex(where: \.isClear) else { continue }
            let taken = batches[slot]?.take(room, ofPart: part) ?? []
            let targets = withinBudget(taken, slot: slot, lane: lane, now: now)
            // What the budget put back left nothing to send: the next step goes on from here.
            guard !targets.isEmpty else { return nextHookedStep(ofLane: lane, now: now) }
            lanes[lane].sent(targets.count, route: route)
            return .send(slot: slot, targets: targets)
        }
        hookedSlots[lane].removeAll { slot in batches[slot]?.hooked.isEmpty ?? true }
        return nil
    }

    private mutating func lapseAnswers(slot: Int, now: ContinuousClock.Instant) {
        for part in (batches[slot]?.hooked.indices ?? 0..<0).reversed() {
            guard let rows = batches[slot]?.hooked[part], case .clear(let until) = rows.stage, until < now else {
                continue
            }
            if let failure = hookedKinds[rows.kind].failure, failure.retryAt > now {
                releaseHooked(slot: slot, part: part, after: now.duration(to: failure.retryAt), at: now)
            } else {
                batches[slot]?.hookAnswerLapsed(part)
                hooksMayBeAsked = true
            }
        }
    }

    // MARK: Releasing

    /// Puts hooked rows of a lease back that no call is under way for.
    private mutating func releaseHooked(
        slot: Int, waitingOf kind: Int, after delay: Duration, at now: ContinuousClock.Instant
    ) {
        releaseHooked(slot: slot, kind: kind, after: delay, at: now) { $0.stage == .waiting }
    }

    /// Puts hooked rows of a lease back that were not sent, without a trace on the ledger; of one kind, or of all.
    /// Answers how many targets that were.
    @discardableResult
    mutating func releaseHooked(
        slot: Int, kind: Int? = nil, after delay: Duration, at now: ContinuousClock.Instant,
        where applies: (HookedRows) -> Bool = { _ in true }
    ) -> Int {
        var released = 0
        for part in (batches[slot]?.hooked.indices ?? 0..<0).reversed() {
            guard let rows = batches[slot]?.hooked[part], kind == nil || rows.kind == kind, applies(rows) else {
                continue
            }
            released += rows.targets.count
            releaseHooked(slot: slot, part: part, after: delay, at: now)
        }
        return released
    }

    /// No row waits beyond its deadline, at which it ends.
    private mutating func releaseHooked(slot: Int, part: Int, after delay: Duration, at now: ContinuousClock.Instant) {
        let time = clock.time(at: now)
        let targets = batches[slot]?.hooked.remove(at: part).targets ?? []
        let claimed = claimed(in: slot).batch
        for target in targets {
            let life = max(.zero, claimed.dispatch(ofTarget: Int(target)).expiresAt - time)
            batches[slot]?.account(target: Int(target), .release(min(delay, life)), row: nil, at: now)
        }
    }
}
