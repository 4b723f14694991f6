/// What a judgement depends on besides the outcome.
package struct JudgementContext: Equatable, Sendable {
    /// Attempts spent on this target before this one.
    package let spentAttempts: Int
    /// The kind's retry policy, or the worker's.
    package let policy: RetryPolicy
    /// The notification's deadline.
    package let expiresAt: Timestamp
    /// The database's time.
    package let now: Timestamp
    /// Whether a 400 may clear a token: lane and topic accepted a push with the current credential within the proof
    /// window, and not so many tokens seem dead that the configuration is to be doubted.
    package let tokensMayBeCleared: Bool
    /// Whether a failure says something about its device rather than about the provider.
    package let laneIsHealthy: Bool
    /// How long a lane or target with a wrong configuration waits.
    package let pause: Duration
    /// How long what was not sent waits: the lane's reconnect backoff.
    package let reconnectDelay: Duration
    /// A draw from 0..<1 for the jitter of this attempt.
    package let jitter: Double

    /// A context of one judgement.
    package init(
        spentAttempts: Int, policy: RetryPolicy, expiresAt: Timestamp, now: Timestamp, tokensMayBeCleared: Bool,
        laneIsHealthy: Bool, pause: Duration, reconnectDelay: Duration, jitter: Double
    ) {
        self.spentAttempts = spentAttempts
        self.policy = policy
        self.expiresAt = expiresAt
        self.now = now
        self.tokensMayBeCleared = tokensMayBeCleared
        self.laneIsHealthy = laneIsHealthy
        self.pause = pause
        self.reconnectDelay = reconnectDelay
        self.jitter = jitter
    }
}

/// A judgement: the fate of the target, the outcome as the ledger shall show it, and what it does to the device.
package struct Judgement: Equatable, Sendable {
    /// What happens to the target.
    package let disposition: Disposition
    /// What the ledger records; nil when the request never left.
    package let outcome: Outcome?
    /// What happens to the device; nil for nothing.
    package let change: DeviceEffect.Change?

    /// Judges a provider's answer.
    package static func of(_ outcome: Outcome, _ context: JudgementContext) -> Judgement {
        switch outcome.kind {
        case .delivered:
            return Judgement(disposition: .final, outcome: outcome, change: .succeeded)
        case .unregistered:
            return deadToken(outcome, context)
        case .rejected:
            return Judgement(disposition: .failed(.rejected), outcome: outcome, change: nil)
        case .retry:
            // A failure counts against a device only where others succeed, and never at a connection of its own fault.
            let change: DeviceEffect.Change? = context.laneIsHealthy && outcome.advice == .none ? .failed : nil
            return Judgement(disposition: nextAttempt(outcome, context), outcome: outcome, change: change)
        case .unknown:
            return Judgement(disposition: nextAttempt(outcome, context), outcome: outcome, change: nil)
        case .throttled:
            return Judgement(disposition: held(outcome.retryFloor, context), outcome: outcome, change: nil)
        case .misconfigured:
            // A replaced token is tried at once; a wrong configuration not before the pause has ended.
            let wait = outcome.advice == .replaceToken ? .zero : max(context.pause, outcome.retryFloor)
            return Judgement(disposition: held(wait, context), outcome: outcome, change: nil)
        case .skipped:
            return Judgement(disposition: .final, outcome: outcome, change: nil)
        }
    }

    /// Judges an attempt without an answer.
    package static func of(_ fault: SendFault, _ context: JudgementContext) -> Judgement {
        switch fault {
        case .notSent:
            // The transport has tried elsewhere already; at once would only turn the row round and round.
            let wait = max(context.reconnectDelay, .seconds(1))
            return Judgement(disposition: .release(wait), outcome: nil, change: nil)
        case .kindUnreadable:
            // A newer worker takes it when it is due again, or this one, if the catalog was mended; at its deadline it
            // ends.
            let life = max(.zero, context.expiresAt - context.now)
            let wait = min(Jitter.lengthen(unreadableWait, by: context.jitter), life)
            return Judgement(disposition: .release(wait), outcome: nil, change: nil)
        case .unanswered(let reason):
            let outcome = Outcome(.unknown, reason: reason)
            return Judgement(disposition: nextAttempt(outcome, context), outcome: outcome, change: nil)
        }
    }

    /// How long what a worker cannot read stays in the queue.
    package static let unreadableWait = Duration.seconds(60)

    /// Clearing a token needs proof: without it the target is only held, so that one wrong environment wipes nobody.
    private static func deadToken(_ outcome: Outcome, _ context: JudgementContext) -> Judgement {
        if outcome.proof == .needsProvenLane && !context.tokensMayBeCleared {
            let unproven = Outcome(
                .misconfigured, scope: .target, status: outcome.status, reason: outcome.reason,
                providerIdentifier: outcome.providerIdentifier)
            return Judgement(disposition: held(context.pause, context), outcome: unproven, change: nil)
        }
        let change: DeviceEffect.Change? = outcome.proof == .none ? nil : .tokenInvalid
        return Judgement(disposition: .final, outcome: outcome, change: change)
    }

    private static func nextAttempt(_ outcome: Outcome, _ context: JudgementContext) -> Disposition {
        guard let delay = context.policy.delay(afterAttempts: context.spentAttempts + 1) else {
            return .failed(.ceiling)
        }
        let wait = Jitter.lengthen(max(delay, outcome.retryFloor), by: context.jitter)
        return context.now + wait < context.expiresAt ? .retry(wait) : .expired(wait)
    }

    private static func held(_ wait: Duration, _ context: JudgementContext) -> Disposition {
        let wait = Jitter.lengthen(wait, by: context.jitter)
        return context.now + wait < context.expiresAt ? .hold(wait) : .expired(wait)
    }
}
