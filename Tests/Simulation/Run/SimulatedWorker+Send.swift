import OutboxCore

/// Sends what a lane has room for, and settles what comes of it: `Dispatcher.pump`, `ProviderLane`.
extension SimulatedWorker {
    func pump(_ lane: Int) {
        while true {
            let now = now
            state.updateLane(lane) { [room = lanes[lane].room] in $0.setCapacity(room) }
            switch state.nextStep(ofLane: lane, now: now) {
            case .none:
                if state.hooksMayBeAsked { askHooks() }
                return ringSettle()
            case .check(let slot, let targets): check(targets, slot: slot)
            case .send(let slot, let targets):
                for target in targets where !send(Int(target), slot: slot, lane: lane) { return }
            }
        }
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
        let (askedAt, owner, lane) = (now, owner, leased.lane)
        let lives = life
        simulation.ask(
            self, .recheck,
            { $0.recheck(asked, batch: claimed.identifier, owner: owner, route: claimed.route) },
            then: { [self] answer in
                guard life == lives else { return }
                var reasons = try? answer.get()
                if let found = reasons {
                    simulation.monitor.checked(claimed.identifier, asked, found)
                    checks[slot] = max(
                        askedAt + simulation.plan.settings.recheckAfter, now + .milliseconds(50))
                    if defect == .ignoresRecheck { reasons = found.map { _ in nil } }
                }
                state.checked(slot: slot, reasons: reasons, askedAt: askedAt, now: now)
                pump(lane)
            })
    }

    // MARK: Requests

    /// Hands one target to the transport; false when the worker died at it.
    private func send(_ target: Int, slot: Int, lane: Int) -> Bool {
        let tag = AttemptTag(slot: slot, target: target)
        let time = state.clock.time(at: now)
        guard state.isInTime(tag, at: time) || defect == .ignoresDeadline else {
            state.expired(tag, now: now)
            simulation.monitor.passed(.expiredAtSend)
            return true
        }
        guard let leased = state.batch(slot) else { return true }
        let claimed = leased.claimed
        let dispatch = leased.dispatch(ofTarget: target)
        let device = claimed.targets[target]
        if lanes[lane].isDown {
            lanes[lane].isDown = false
            state.updateLane(lane) { $0.connected() }
        }
        let request = Request(
            tag: tag, serial: simulation.provider.nextSerial(), worker: index, life: life, lane: lane,
            batch: claimed.identifier, notification: dispatch.notification, device: device.device, route: claimed.route,
            token: String(decoding: claimed[device.token], as: UTF8.self),
            tokenSequence: device.tokenSequence,
            collapseKey: String(decoding: claimed[dispatch.collapseKey], as: UTF8.self),
            expiresAt: dispatch.expiresAt, madeAt: time)
        lanes[lane].open(request)
        simulation.note(index, "request", request.serial, Int(device.device), simulation.describe(request))
        simulation.monitor.made(request, by: self, holds: checks[slot], simulation)
        let key = simulation.monitor.number(dispatch.notification, simulation.store)
        simulation.schedule(after: simulation.jitter(50...800, salt: 40), worker: self) { [self] in
            written(request, key)
        }
        at(now + simulation.plan.settings.requestTimeout) { [self] in timedOut(request) }
        return passes(.requestMade)
    }

    /// The request leaves, unless the connection refuses it.
    private func written(_ request: Request, _ key: Int) {
        guard lanes[request.lane].isOpen(request.serial) else { return }
        if simulation.dice.strikes(.notSent, -10 - key, request.serial) {
            return answered(request, .fault(.notSent(reason: "refused")))
        }
        lanes[request.lane].wrote(request.serial)
        let way = simulation.jitter(1000...30_000, salt: 41)
        simulation.schedule(after: way) { [simulation] in
            simulation.provider.receive(request, key, simulation)
        }
        if simulation.monitor.poison.contains(request.notification),
            simulation.dice.happens(FaultKey(kind: .poison, stream: -10 - key, occasion: request.serial))
        {
            return die("dies of a poisonous row")
        }
        _ = passes(.requestWritten)
    }

    private func timedOut(_ request: Request) {
        guard lanes[request.lane].isOpen(request.serial) else { return }
        let wasWritten = lanes[request.lane].isWritten(request.serial)
        answered(
            request, .fault(wasWritten ? .unanswered(reason: "timeout") : .notSent(reason: "timeout")))
    }

    /// An answer or a fault came.
    func answered(_ request: Request, _ result: AttemptResult.Result) {
        guard lanes[request.lane].close(request.serial) else { return }
        guard passes(.answerHeard) else { return }
        let isAnswer = if case .outcome = result { true } else { false }
        end(request, result, answeredAt: isAnswer ? state.clock.time(at: now) : nil)
        handleAlarms()
        pump(request.lane)
        if state.wantsWork(lane: request.lane, at: now) { claimSignal.ring() }
    }

    func end(_ request: Request, _ result: AttemptResult.Result, answeredAt: Timestamp?) {
        var result = result
        if case .fault(.unanswered) = result {
            if defect == .believesInSilence { result = .outcome(Outcome(.delivered, status: 200)) }
            if defect == .deniesUnanswered { result = .fault(.notSent(reason: "denied")) }
        }
        guard state.batch(request.tag.slot)?.claimed.identifier == request.batch else { return }
        state.ended(
            AttemptResult(
                tag: request.tag, result: result, attemptedAt: request.madeAt, answeredAt: answeredAt),
            policy: nil, now: now)
    }

    /// What answers ask of lanes. A new access token is always to be had, a new connection too.
    private func handleAlarms() {
        _ = state.takeAlarms()
    }

    // MARK: Connections

    /// A lane's connection ends: what was written is unanswered, what was not goes back.
    func loseConnection(lane: Int) {
        simulation.note(index, "connection lost", lane)
        lanes[lane].isDown = true
        let wait = Duration.microseconds(simulation.jitter(10_000...3_000_000, salt: 42))
        state.updateLane(lane) { [now] in $0.disconnected(retryAt: now + wait, because: "lost", at: now) }
        for (request, wasWritten) in lanes[lane].takeAllWithFate() {
            end(
                request, .fault(wasWritten ? .unanswered(reason: "lost") : .notSent(reason: "lost")),
                answeredAt: nil)
        }
        pump(lane)
    }
}
