/// The database's time, carried forward by the local monotonic clock since the last answer that told it.
package struct DatabaseClock: Equatable, Sendable {
    private let reading: Timestamp
    private let readAt: ContinuousClock.Instant

    /// The database said `reading`; its answer came at `readAt`, so that the clock lags by at most the way back.
    package init(reading: Timestamp, at readAt: ContinuousClock.Instant) {
        self.reading = reading
        self.readAt = readAt
    }

    /// The database's time at a local instant.
    package func time(at instant: ContinuousClock.Instant) -> Timestamp {
        reading + readAt.duration(to: instant)
    }
}
