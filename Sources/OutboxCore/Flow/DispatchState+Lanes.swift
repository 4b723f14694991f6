/// What answers teach about lanes and topics: whose fault it is, and who has to wait for it.
extension DispatchState {
    func isProven(_ lane: Int, _ route: RouteNumber, _ now: ContinuousClock.Instant) -> Bool {
        lanes[lane].isProven(route: route, within: settings.proofWindow, at: now)
    }

    /// The lane learns from an answer, after its target was judged by what was known before.
    mutating func learn(
        _ outcome: Outcome, tokenMark: UInt8, lane: Int, route: RouteNumber, now: ContinuousClock.Instant
    ) {
        switch outcome.advice {
        case .replaceToken: return alarms.append(.replaceToken(lane: lane, mark: tokenMark, outcome))
        case .reconnect: alarms.append(.reconnect(lane: lane))
        case .none, .keepToken: break
        }
        switch outcome.kind {
        case .delivered:
            lanes[lane].accepted(route: route, at: now)
            learnWell(.good, lane: lane, route: route, now: now)
        case .unregistered where outcome.proof == .needsProvenLane:
            learnTokenFault(outcome, lane: lane, route: route, now: now)
        case .unregistered, .rejected:
            learnWell(.good, lane: lane, route: route, now: now)
        case .retry:
            learnWell(.providerFault, lane: lane, route: route, now: now)
        case .throttled:
            learnThrottling(outcome, lane: lane, route: route, now: now)
        case .misconfigured:
            learnWrongConfiguration(outcome, lane: lane, route: route, now: now)
        case .unknown, .skipped:
            break
        }
    }

    private mutating func learnWell(
        _ answer: AnswerWindow.Answer, lane: Int, route: RouteNumber, now: ContinuousClock.Instant
    ) {
        lanes[lane].count(answer, route: route, at: now)
        let ended = lanes[lane].answeredWell(route: route, at: now)
        if ended.lane { alarms.append(.resumed(lane: lane, route: nil)) }
        if ended.topic { alarms.append(.resumed(lane: lane, route: route)) }
    }

    /// A token or target was refused in a way that a wrong configuration would look like too: many of them are one.
    private mutating func learnTokenFault(
        _ outcome: Outcome, lane: Int, route: RouteNumber, now: ContinuousClock.Instant
    ) {
        let isStorm = lanes[lane].isTokenStorm(on: route)
        lanes[lane].count(.tokenFault, route: route, at: now)
        if isStorm {
            pause(lane: lane, route: route, status: outcome.status, reason: outcome.reason, now: now)
        } else if outcome.kind == .misconfigured || !isProven(lane, route, now) {
            noteHeldTarget(outcome, lane: lane, route: route, now: now)
        } else {
            learnEndOfPause(lane: lane, now: now)
        }
    }

    private mutating func learnEndOfPause(lane: Int, now: ContinuousClock.Instant) {
        // The credential is right, or nothing would have been said of the token.
        if lanes[lane].answeredWell(route: nil, at: now).lane { alarms.append(.resumed(lane: lane, route: nil)) }
    }

    private mutating func noteHeldTarget(
        _ outcome: Outcome, lane: Int, route: RouteNumber, now: ContinuousClock.Instant
    ) {
        guard lanes[lane].notesHeldTarget(route: route, reason: outcome.reason, at: now) else { return }
        alarms.append(.held(lane: lane, route: route, status: outcome.status, reason: outcome.reason))
    }

    private mutating func learnWrongConfiguration(
        _ outcome: Outcome, lane: Int, route: RouteNumber, now: ContinuousClock.Instant
    ) {
        switch outcome.scope {
        case .target: learnTokenFault(outcome, lane: lane, route: route, now: now)
        case .topic: pause(lane: lane, route: route, status: outcome.status, reason: outcome.reason, now: now)
        case .lane: pause(lane: lane, status: outcome.status, reason: outcome.reason, now: now)
        }
    }

    private mutating func learnThrottling(
        _ outcome: Outcome, lane: Int, route: RouteNumber, now: ContinuousClock.Instant
    ) {
        let concernsLane = outcome.scope == .lane || lanes[lane].isThrottleStorm(on: route)
        lanes[lane].count(.throttled, route: route, at: now)
        guard concernsLane else { return }
        lanes[lane].throttled(at: now)
        // Whoever asks for less says for how long.
        pause(
            lane: lane, status: outcome.status, reason: outcome.reason,
            for: max(outcome.retryFloor, Self.shortestThrottlePause), doubtsCredential: false, now: now)
    }

    private static let shortestThrottlePause = Duration.seconds(1)

    /// Pauses a lane, or one topic of it, for its configured pause or for `duration`: what it holds unsent goes back,
    /// due at the end of the pause; one alarm at its beginning.
    package mutating func pause(
        lane: Int, route: RouteNumber? = nil, status: Int16, reason: String, for duration: Duration? = nil,
        doubtsCredential: Bool = true, now: ContinuousClock.Instant
    ) {
        let duration = duration ?? lanes[lane].description.pause
        let pause = LanePause(
            status: status, reason: reason, duration: duration, doubtsCredential: doubtsCredential)
        switch lanes[lane].pause(route: route, pause, at: now) {
        case .began:
            if let route, lanes[lane].hasNotedHeldTarget(route: route, reason: reason, at: now) {
                alarms.append(.spread(lane: lane, route: route, pause))
            } else {
                alarms.append(.paused(lane: lane, route: route, pause))
            }
        case .prolonged: alarms.append(.prolonged(lane: lane, route: route, pause))
        case .known: break
        }
        releaseUnsent(ofLane: lane, route: route, after: duration, at: now)
    }

    /// The lane's credential was read anew; `isAnother` when it is not the one that was in use.
    package mutating func credentialWasRead(lane: Int, isAnother: Bool, now: ContinuousClock.Instant) {
        if isAnother {
            lanes[lane].credentialChanged(at: now)
        } else {
            lanes[lane].probeSoon(at: now)
        }
    }
}

extension AttemptResult {
    /// What the attempt was to the retry budget.
    var budgetEnd: RetryBudget.End {
        switch result {
        case .outcome(let outcome): outcome.kind == .delivered ? .accepted : .spent
        case .fault(.notSent), .fault(.kindUnreadable): .unsent
        case .fault(.unanswered): .spent
        }
    }
}
