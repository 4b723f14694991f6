/// Which long-pending notifications are to be warned about: each once per interval, and no more at a time than somebody
/// can read.
package struct PendingWatch: Equatable, Sendable {
    /// Most notifications that a look is shown, and so most warnings of one look.
    package static let sampleSize = 20
    /// Most notifications whose last warning is remembered; beyond it the oldest are warned about again.
    package static let memory = 1000

    private let interval: Duration
    private var warnedAt: [Identifier: ContinuousClock.Instant] = [:]

    /// A watch that warns of the same notification again after `interval`.
    package init(interval: Duration) {
        self.interval = interval
    }

    /// How often to look: often enough that nothing is noticed much later than its age asks for.
    package var pause: Duration { min(interval / 5, .seconds(30)) }

    /// Those of a sample that are to be warned about now.
    package mutating func news(_ sample: [LongPending], at now: ContinuousClock.Instant) -> [LongPending] {
        warnedAt = warnedAt.filter { $0.value + interval > now }
        let news = sample.filter { warnedAt[$0.notification] == nil }
        if warnedAt.count + news.count > Self.memory { warnedAt.removeAll() }
        for pending in news { warnedAt[pending.notification] = now }
        return news
    }
}
