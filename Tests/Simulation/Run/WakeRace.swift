import OutboxCore

/// The race between a worker that goes to sleep and producers that think it awake: how long a row that was committed
/// waits to be seen. Real is `WakePlan`; one try is one worker, one row.
package struct WakeRace: Sendable {
    /// Tries that were made.
    package private(set) var tries = 0
    /// Tries in which the producer saw the awake key held, so that nobody was notified.
    package private(set) var unnotified = 0
    /// Tries that saw the row only with the poll.
    package private(set) var polled = 0
    /// The longest wait from commit to the look that saw the row.
    package private(set) var longest = Duration.zero
    /// The longest that is allowed: one poll, and the ways of two statements.
    package let bound: Duration

    private let poll: Duration
    private var random: SplitMix

    /// A race by one seed; each try ends with the row seen.
    package init(seed: UInt64, poll: Duration = .seconds(1)) {
        random = SplitMix(seed: seed)
        self.poll = poll
        bound = poll + .microseconds(4 * Self.slowestWay)
    }

    private static let slowestWay = 2000

    /// Makes `count` tries, in each of which a notification is lost with this chance.
    package mutating func run(_ count: Int, losing share: Double = 0) {
        for _ in 0..<count { attempt(losing: share) }
    }

    private mutating func way() -> Duration { .microseconds(Int.random(in: 50...Self.slowestWay, using: &random)) }

    private mutating func attempt(losing share: Double) {
        tries += 1
        let origin = Simulation.origin
        var plan = WakePlan(poll: poll)
        let insertedAt = Duration.microseconds(Int.random(in: 0...300_000, using: &random))
        let isLong = random.fraction() < 0.2
        let committedAt =
            insertedAt + .microseconds(Int.random(in: 100...(isLong ? 400_000 : 5000), using: &random))
        var now = Duration.zero
        /// When the keys were let go; nil while they are held.
        var releasedAt: Duration?
        while true {
            let looksAt = now + way()
            if looksAt >= committedAt {
                note(looksAt - committedAt, wasNotified: releasedAt.map { $0 <= insertedAt } ?? false)
                return
            }
            now = looksAt + way()
            switch plan.foundNothing(untilDue: nil, jitter: random.fraction(), now: origin + now) {
            case .letGo:
                releasedAt = now + way()
                now = (releasedAt ?? now) + way()
            case .wait(let duration):
                var wakesAt = now + duration
                let isNotified = releasedAt.map { $0 <= insertedAt } ?? false && random.fraction() >= share
                if isNotified { wakesAt = min(wakesAt, max(now, committedAt + way())) }
                now = wakesAt
            }
        }
    }

    private mutating func note(_ wait: Duration, wasNotified: Bool) {
        longest = max(longest, wait)
        if !wasNotified { unnotified += 1 }
        if wait > .milliseconds(60) { polled += 1 }
    }
}
