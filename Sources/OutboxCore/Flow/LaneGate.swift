/// Whether requests may pass: the gate of a lane, or of one topic in it.
///
/// ```
///            fault                    the pause has ended
///   open ────────────► paused ─────────────────────────────► probing: one request at a time
///    ▲                   ▲                                      │
///    │                   └──────────── fault ───────────────────┤
///    └────────────── any other answer ──────────────────────────┘
/// ```
///
/// Only a probe's answer ends a pause: what was in flight when it began says nothing about what was mended since.
package struct LaneGate: Equatable, Sendable {
    /// Why requests are held back.
    package struct Pause: Equatable, Sendable {
        /// When the pause began; a refused probe makes it longer and leaves this.
        package let since: ContinuousClock.Instant
        /// When the next probe may go out.
        package fileprivate(set) var until: ContinuousClock.Instant
        /// The answer's status; 0 where there was none.
        package let status: Int16
        /// The answer's reason.
        package let reason: String
        /// Whether the credential may be the cause.
        package let doubtsCredential: Bool
    }

    /// What closing the gate came to.
    package enum Closing: Equatable, Sendable {
        /// The pause begins with it.
        case began
        /// A probe was refused: the pause goes on.
        case prolonged
        /// It was closed already.
        case known
    }

    /// The pause; nil while the gate is open.
    package private(set) var pause: Pause?
    private var probes = 0

    /// An open gate.
    package init() {}

    /// How many requests may pass at `now`: all, one, or none.
    package func allowance(at now: ContinuousClock.Instant) -> Int {
        guard let pause else { return .max }
        return pause.until <= now ? max(0, 1 - probes) : 0
    }

    /// Requests passed.
    package mutating func passed(_ count: Int) {
        if pause != nil { probes += count }
    }

    /// A request that passed has ended, however.
    package mutating func ended() {
        if pause != nil { probes = max(0, probes - 1) }
    }

    /// An answer speaks for a fault that all requests would meet.
    package mutating func close(_ cause: LanePause, at now: ContinuousClock.Instant) -> Closing {
        guard let pause else {
            self.pause = Pause(
                since: now, until: now + cause.duration, status: cause.status, reason: cause.reason,
                doubtsCredential: cause.doubtsCredential)
            probes = 0
            return .began
        }
        guard pause.until <= now else { return .known }
        self.pause?.until = now + cause.duration
        return .prolonged
    }

    /// An answer came that is no such fault; answers whether a pause ends with it.
    package mutating func answered(at now: ContinuousClock.Instant) -> Bool {
        guard let pause, pause.until <= now else { return false }
        self.pause = nil
        return true
    }

    /// The configuration was read anew: a probe may go out at once.
    package mutating func probeSoon(at now: ContinuousClock.Instant) {
        guard let pause, pause.until > now else { return }
        self.pause?.until = now
    }
}
