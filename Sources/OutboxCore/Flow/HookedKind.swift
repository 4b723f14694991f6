/// A kind that has hooks, or had them: whether it is being asked, and whether it fails.
///
/// States: answering (→ failing by a call that fails), failing (→ answering by one that does not, asked again at
/// `retryAt`). At most one call is under way.
struct HookedKind: Sendable {
    /// What the kind's hooks fail by, and since when.
    struct Failure: Equatable, Sendable {
        let fault: HookFault
        let since: ContinuousClock.Instant
        let retryAt: ContinuousClock.Instant
        fileprivate let wait: Duration
    }

    let name: String
    /// Its hooks now; empty when they were removed.
    var hooks: [KindHook]
    /// Whether a call is under way.
    var isAsking = false
    private(set) var failure: Failure?
    /// How long one row took in the last call.
    private var pace = Duration.milliseconds(1)
    /// When the hooks will have come to the last of the rows that were put back for want of room.
    private var backlogEnds: ContinuousClock.Instant?

    init(name: String, hooks: [KindHook]) {
        self.name = name
        self.hooks = hooks
    }

    /// The first wait after a failure; it doubles up to the last.
    static let firstWait = Duration.seconds(1)
    static let lastWait = Duration.seconds(60)

    /// Whether its hooks may be asked: none is under way, and a failure is long enough ago.
    func mayBeAsked(at now: ContinuousClock.Instant) -> Bool {
        !isAsking && !hooks.isEmpty && (failure.map { $0.retryAt <= now } ?? true)
    }

    /// A call failed; answers how long its rows wait. `fraction` (0..<1) lengthens the wait by up to a fifth.
    mutating func failed(_ fault: HookFault, fraction: Double, at now: ContinuousClock.Instant) -> Duration {
        let next = failure.map { min(Self.lastWait, $0.wait * 2) } ?? Self.firstWait
        let wait = Jitter.lengthen(next, by: fraction)
        failure = Failure(fault: fault, since: failure?.since ?? now, retryAt: now + wait, wait: next)
        return wait
    }

    /// A call about `rows` was answered after `duration`. Answers how long its hooks had failed; nil when they had not.
    mutating func answered(rows: Int, in duration: Duration, at now: ContinuousClock.Instant) -> Duration? {
        pace = duration / max(1, rows)
        return forgetFailure(at: now)
    }

    /// Its failure is over; answers how long it lasted.
    mutating func forgetFailure(at now: ContinuousClock.Instant) -> Duration? {
        defer { failure = nil }
        return failure.map { $0.since.duration(to: now) }
    }

    /// How long `rows` more stay in the queue, when `waiting` others are before them: until the hooks will have come to
    /// them at their pace, so that a slow hook does not have its rows claimed and put back again and again.
    mutating func turnAway(_ rows: Int, behind waiting: Int, at now: ContinuousClock.Instant) -> Duration {
        let begin = max(backlogEnds ?? now, now + pace * waiting)
        let end = min(begin + pace * rows, now + Self.lastWait)
        backlogEnds = end
        return now.duration(to: end)
    }
}
