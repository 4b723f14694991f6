import EventLoop
import Glibc
import HTTP2
import OutboxCore

#if CRASH_POINTS
    import CrashPoints
#endif

extension Dispatcher {
    /// Sends what a lane has room for.
    func pump(_ lane: Int) {
        while true {
            let now = ContinuousClock.now
            let capacity = lanes[lane].capacity
            state.updateLane(lane) { $0.setCapacity(capacity) }
            switch state.nextStep(ofLane: lane, now: now) {
            case .none:
                if state.hooksMayBeAsked { askHooks(at: now) }
                ringSettle(at: now)
                return
            case .check(let slot, let targets):
                check(targets, slot: slot)
            case .send(let slot, let targets):
                send(targets, slot: slot, lane: lane, now: now)
            }
        }
    }

    private func send(_ targets: ArraySlice<Int32>, slot: Int, lane: Int, now: ContinuousClock.Instant) {
        let time = state.clock.time(at: now)
        var inTime: [Int32] = []
        inTime.reserveCapacity(targets.count)
        for target in targets {
            let tag = AttemptTag(slot: slot, target: Int(target))
            if state.isInTime(tag, at: time) { inTime.append(target) } else { state.expired(tag, now: now) }
        }
        guard let leased = state.batch(slot) else { return }
        guard let route = routes[leased.claimed.route] else {
            // The registry no longer has it: whoever serves it next, these go back.
            for target in inTime {
                end(
                    AttemptTag(slot: slot, target: Int(target)), .fault(.notSent(reason: "no_route")),
                    attemptedAt: time, answeredAt: nil, now: now)
            }
            return
        }
        let sent = lanes[lane].send(
            inTime, slot: slot, of: leased, kinds: kinds, route: route, now: (now, time), wallClock: wallClock(),
            isProbe: state.lanes[lane].probesCredential(route.number))
        for refusal in sent.refusals {
            end(refusal.tag, .outcome(refusal.outcome), attemptedAt: time, answeredAt: nil, now: now)
        }
        for unsent in sent.unsent {
            end(unsent.tag, .fault(unsent.fault), attemptedAt: time, answeredAt: nil, now: now)
        }
        if let access = sent.access { noteAccess(lane: lane, access) }
        handleAlarms()
    }

    /// Answers and faults that a transport had in one turn of the loop.
    func answered(lane: Int, _ batch: inout HTTPResultBatch) {
        let now = ContinuousClock.now
        let clock = state.clock
        for result in batch.results {
            let endedAt = clock.time(at: result.endedAt)
            let attemptedAt = result.sentAt.map { clock.time(at: $0) } ?? endedAt
            switch result.outcome {
            case .success(let response):
                let outcome = lanes[lane].decode(response, batch.bytes)
                end(
                    AttemptTag(number: result.tag), .outcome(outcome), attemptedAt: attemptedAt, answeredAt: endedAt,
                    now: now)
            case .failure(let fault):
                end(
                    AttemptTag(number: result.tag), .fault(SendFault(fault)), attemptedAt: attemptedAt,
                    answeredAt: nil, now: now)
            }
        }
        #if CRASH_POINTS
            CrashPoint.answerJudged.reached()
        #endif
        handleAlarms()
        pump(lane)
        // Room on another lane is no news: an idle one would have the queue searched with every answer of a busy one.
        if state.wantsWork(lane: lane, at: now) { claimSignal.ring() }
    }

    private func end(
        _ tag: AttemptTag, _ result: AttemptResult.Result, attemptedAt: Timestamp, answeredAt: Timestamp?,
        now: ContinuousClock.Instant
    ) {
        let policy = state.kind(of: tag).flatMap { kinds[$0]?.retry }
        state.ended(
            AttemptResult(tag: tag, result: result, attemptedAt: attemptedAt, answeredAt: answeredAt),
            policy: policy, now: now)
    }

    /// The settling task is rung when a flush is due, or when it waits without a time.
    func ringSettle(at now: ContinuousClock.Instant) {
        if settleIsIdle || state.hasDueFlush(at: now) { settleSignal.ring() }
    }

    // MARK: Checks

    private func check(_ targets: ArraySlice<Int32>, slot: Int) {
        guard let leased = state.batch(slot) else { return }
        let claimed = leased.claimed
        let asked = targets.map { target in
            let device = claimed.targets[Int(target)]
            return RecheckTarget(
                notification: leased.dispatch(ofTarget: Int(target)).notification, device: device.device,
                tokenSequence: device.tokenSequence)
        }
        Task(executorPreference: loop) {
            await self.recheck(asked, slot: slot, batch: claimed.identifier, route: claimed.route, lane: leased.lane)
        }
    }

    private func recheck(
        _ asked: [RecheckTarget], slot: Int, batch: Identifier, route: RouteNumber, lane: Int
    ) async {
        let askedAt = ContinuousClock.now
        var reasons: [SettlementReason?]?
        do {
            reasons = try await store.recheck(asked, batch: batch, route: route)
            storeAnswered()
        } catch {
            observer.storeFailed(error)
        }
        state.checked(slot: slot, reasons: reasons, askedAt: askedAt, now: .now)
        pump(lane)
    }

    // MARK: Lanes

    /// A transport's connections changed.
    func transportChanged(lane: Int, _ change: HTTP2ClientState) {
        let name = configurations[lane].description.name
        let now = ContinuousClock.now
        switch change {
        case .up:
            let wasDown = !state.lanes[lane].isConnected
            state.updateLane(lane) { $0.connected() }
            if wasDown && state.lanes[lane].isConnected {
                observer.laneUp(name)
                laneChanged()
            }
            pump(lane)
            claimSignal.ring()
        case .replacing(let error):
            observer.connectionReplaced(name, reason: error.description)
        case .down(let error, let retryAt):
            let wasUp = state.lanes[lane].isConnected
            state.updateLane(lane) { $0.disconnected(retryAt: retryAt, because: error.description, at: now) }
            if wasUp {
                observer.laneDown(name, reason: error.description, until: now.duration(to: retryAt))
                laneChanged()
            }
            pump(lane)
        }
    }

    private func name(of lane: Int) -> String { configurations[lane].description.name }

    /// Does what answers asked of lanes: a new token, a pause.
    func handleAlarms() {
        var alarms = state.takeAlarms()
        // What is done about one alarm can raise another.
        while !alarms.isEmpty {
            for alarm in alarms { handle(alarm) }
            alarms = state.takeAlarms()
        }
    }

    private func handle(_ alarm: LaneAlarm) {
        switch alarm {
        case .paused(let lane, let route, let pause):
            let stopped = route.map { [$0] } ?? state.lanes[lane].routes
            observer.lanePaused(name(of: lane), routes: stopped.compactMap { routes[$0] }, pause)
            laneChanged()
        case .spread(let lane, let route, let pause):
            if let route = routes[route] { observer.pauseSpread(name(of: lane), route: route, pause) }
            laneChanged()
        case .prolonged(let lane, let route, let pause):
            observer.lanePauseProlonged(name(of: lane), route: route.flatMap { routes[$0] }, pause)
            laneChanged()
        case .resumed(let lane, let route):
            observer.laneResumed(name(of: lane), route: route.flatMap { routes[$0] })
            laneChanged()
        case .held(let lane, let route, let status, let reason):
            guard let route = routes[route] else { return }
            observer.targetHeld(name(of: lane), route: route, status: status, reason: reason)
        case .replaceToken(let lane, let mark, let refusal):
            replaceToken(lane: lane, mark: mark, because: refusal)
        case .reconnect(let lane):
            lanes[lane].reconnect()
        }
    }

    /// Seconds since the Unix epoch by this machine's clock: what access tokens are dated by.
    func wallClock() -> Int64 {
        Int64(time(nil))
    }
}

extension SendFault {
    /// The transport's fault in the words of the ledger.
    init(_ fault: HTTPFault) {
        switch fault {
        case .notSent(let reason): self = .notSent(reason: reason.rawValue)
        case .unanswered(let reason): self = .unanswered(reason: reason.rawValue)
        }
    }
}
