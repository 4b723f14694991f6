/// When an idle worker looks for work again, and whether it holds the awake keys meanwhile.
///
/// With the keys producers need not notify, which is worth something only where rows come faster than they are looked
/// for: so they are held from the fourth look in a row that found work. Rows that come one by one are notified, and
/// none of them can fall between a producer that saw the keys and a worker that has let go of them.
///
/// Going to sleep it lets go of the keys and claims once more at once, again after 5 and 50 ms (for producers that saw
/// it awake and had not committed yet), and then waits for a notification, the next due instant or the poll, which is
/// the truth that bounds all else.
package struct WakePlan: Equatable, Sendable {
    /// What the worker does now.
    package enum Step: Equatable, Sendable {
        /// Let go of the awake keys, then look again at once.
        case letGo
        /// Wait so long, or for a notification.
        case wait(Duration)
    }

    /// Looks in a row that find work before the keys are held.
    package static let findsBeforeAwake = 4
    private static let looksAfterLettingGo: [Duration] = [.milliseconds(5), .milliseconds(55)]

    private let poll: Duration
    /// A worker that starts does not know yet how much there is.
    private var finds = Self.findsBeforeAwake
    private var letGoAt: ContinuousClock.Instant?

    /// A worker that starts; `poll` is the longest time without a look.
    package init(poll: Duration) {
        self.poll = poll
    }

    /// Whether the awake keys are to be held.
    package var isAwake: Bool { finds >= Self.findsBeforeAwake }

    /// Work was found.
    package mutating func foundWork() {
        finds = min(finds + 1, Self.findsBeforeAwake)
    }

    /// Nothing was found. `untilDue` is how long until the earliest waiting row is due; `jitter` is drawn from 0..<1.
    package mutating func foundNothing(untilDue: Duration?, jitter: Double, now: ContinuousClock.Instant) -> Step {
        let wasAwake = isAwake
        finds = 0
        if wasAwake {
            letGoAt = now
            return .letGo
        }
        // Jittered downwards: the poll is the longest time without a look.
        let patience = untilLook(now: now) ?? poll * (1 - 0.2 * jitter)
        return .wait(max(.milliseconds(1), min(patience, untilDue ?? patience)))
    }

    /// How long until the next of the looks that letting go of the keys asks for.
    private mutating func untilLook(now: ContinuousClock.Instant) -> Duration? {
        guard let letGoAt else { return nil }
        if let next = Self.looksAfterLettingGo.first(where: { letGoAt + $0 > now }) {
            return now.duration(to: letGoAt + next)
        }
        self.letGoAt = nil
        return nil
    }
}
