/// The database's time, carried forward by the local monotonic clock since answers that told it.
///
/// A reading is of some moment between its question and its answer. A worker that stands still before it hears the
/// answer would lag by all that time if it took the reading for the present; what it knew before is better then.
package struct DatabaseClock: Equatable, Sendable {
    private let reading: Timestamp
    private let readAt: ContinuousClock.Instant

    /// The database said `reading`; its answer came at `readAt`, so that the clock lags by at most the way back.
    package init(reading: Timestamp, at readAt: ContinuousClock.Instant) {
        self.reading = reading
        self.readAt = readAt
    }

    /// The database said `time` in answer to a question: the clock goes on as it went, as far as that fits; else it
    /// changes by the least that fits, because the database's clock was set or ours goes wrong.
    package mutating func heard(
        _ time: Timestamp, askedAt: ContinuousClock.Instant, answeredAt: ContinuousClock.Instant
    ) {
        let latest = time + askedAt.duration(to: answeredAt)
        self = DatabaseClock(reading: min(max(self.time(at: answeredAt), time), latest), at: answeredAt)
    }

    /// The database's time at a local instant.
    package func time(at instant: ContinuousClock.Instant) -> Timestamp {
        reading + readAt.duration(to: instant)
    }
}
