/// What an attempt came to, as the ledger records it.
package enum OutcomeKind: Int16, CaseIterable, Sendable {
    /// The provider accepted it.
    case delivered = 0
    /// The token is dead.
    case unregistered = 1
    /// Our message is at fault.
    case rejected = 2
    /// The provider is at fault; it is tried again.
    case retry = 3
    /// The provider asked us to slow down.
    case throttled = 4
    /// A key, topic, environment or sender is wrong.
    case misconfigured = 5
    /// It was sent; the answer was lost.
    case unknown = 6
    /// It fell out between claim and send.
    case skipped = 7

    /// The name in views, logs and metrics.
    package var name: String { "\(self)" }

    /// Whether the attempt counts against the target's ceiling.
    package var spendsAttempt: Bool {
        switch self {
        case .retry, .unknown: true
        case .delivered, .unregistered, .rejected, .throttled, .misconfigured, .skipped: false
        }
    }
}

/// Whom a fault concerns: how far its consequences reach.
package enum FaultScope: Int16, Equatable, Sendable {
    /// This device alone.
    case target = 0
    /// Every target of this topic in the lane.
    case topic = 1
    /// The whole lane: its credential, team or project.
    case lane = 2
}

/// What a lane has to do about an answer, besides settling its row.
package enum LaneAdvice: Equatable, Sendable {
    /// Nothing.
    case none
    /// The access token is too old: make one new one, open a new connection, repeat the request once.
    case replaceToken
    /// Tokens were made too often: keep the one in use, wait.
    case keepToken
    /// The connection is bad: open a new one, repeat there.
    case reconnect
}

/// What is known about a token that a provider calls dead.
package enum TokenProof: Equatable, Sendable {
    /// The answer does not say that the token is dead.
    case none
    /// The answer itself is proof (410, UNREGISTERED).
    case proven
    /// Proof only in a lane where this token or another of the topic was accepted lately (a 400 such as
    /// BadDeviceToken).
    case needsProvenLane
}

/// A provider's answer, read: a value, never an error.
package struct Outcome: Equatable, Sendable {
    /// What it came to.
    package let kind: OutcomeKind
    /// Whom it concerns.
    package let scope: FaultScope
    /// The provider's status code (an HTTP status); 0 where no answer was involved.
    package let status: Int16
    /// The provider's reason, from the closed table; an unknown one is bounded and reduced to `[A-Za-z0-9_.-]`.
    package let reason: String
    /// The provider's own name for the message.
    package let providerIdentifier: ProviderIdentifier?
    /// When the provider learned that the token is dead; nil where it does not say.
    package let deadSince: Timestamp?
    /// What the answer proves about the token.
    package let proof: TokenProof
    /// No repetition sooner than this; zero for no floor.
    package let retryFloor: Duration
    /// What the lane has to do.
    package let advice: LaneAdvice
    /// The provider's own time, in seconds since the Unix epoch; nil unless the answer finds fault with the time of a
    /// token.
    package let providerTime: Int64?

    /// An outcome; what is not said has no consequence.
    package init(
        _ kind: OutcomeKind, scope: FaultScope = .target, status: Int16 = 0, reason: String = "",
        providerIdentifier: ProviderIdentifier? = nil, deadSince: Timestamp? = nil, proof: TokenProof = .none,
        retryFloor: Duration = .zero, advice: LaneAdvice = .none, providerTime: Int64? = nil
    ) {
        self.kind = kind
        self.scope = scope
        self.status = status
        self.reason = reason
        self.providerIdentifier = providerIdentifier
        self.deadSince = deadSince
        self.proof = proof
        self.retryFloor = retryFloor
        self.advice = advice
        self.providerTime = providerTime
    }
}

/// Why an attempt has no outcome.
package enum SendFault: Equatable, Sendable {
    /// The request cannot have been processed: repeated for free, never on the ledger.
    case notSent(reason: String)
    /// Its kind cannot be read by this worker: back to the queue for a while, never on the ledger.
    case kindUnreadable
    /// The request left and no answer came: on the ledger as `unknown`, an attempt spent.
    case unanswered(reason: String)
}
