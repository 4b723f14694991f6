/// When an idle worker looks for work again.
///
/// Going to sleep it lets go of the awake keys and claims once more at once, again after 5 and 50 ms (for producers
/// that saw it awake and had not committed yet), and then waits for a notification, the next due instant or the poll,
/// which is the truth that bounds all else.
struct WakePlan: Equatable, Sendable {
    /// What the worker does now.
    enum Step: Equatable {
        /// Let go of the awake keys, then look again at once.
        case letGo
        /// Wait so long, or for a notification.
        case wait(Duration)
    }

    private static let afterLettingGo: [Duration] = [.milliseconds(5), .milliseconds(50)]

    private let poll: Duration
    private var emptyLooks = 0

    init(poll: Duration) {
        self.poll = poll
    }

    /// Whether the awake keys are to be held: not from letting go until work is found again.
    var isAwake: Bool { emptyLooks == 0 }

    /// Work was found.
    mutating func foundWork() {
        emptyLooks = 0
    }

    /// A notification came, or a timer for due work: the next looks start from the beginning only if they find work.
    mutating func woken() {
        emptyLooks = max(emptyLooks, 1)
    }

    /// Nothing was found. `untilDue` is how long until the earliest waiting row is due; `jitter` is drawn from 0..<1.
    mutating func foundNothing(untilDue: Duration?, jitter: Double) -> Step {
        emptyLooks += 1
        if emptyLooks == 1 { return .letGo }
        let step = emptyLooks - 2
        // Jittered downwards: the poll is the longest time without a look.
        let patience = step < Self.afterLettingGo.count ? Self.afterLettingGo[step] : poll * (1 - 0.2 * jitter)
        return .wait(max(.milliseconds(1), min(patience, untilDue ?? patience)))
    }
}
