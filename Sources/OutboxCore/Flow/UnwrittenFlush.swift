/// A flush on its way into the database, and what has become of that so far. It may be repeated as often as it takes;
/// meanwhile its lease is renewed.
package struct UnwrittenFlush: Sendable {
    /// The slot of its lease.
    package let slot: Int
    /// What is to be written.
    package let settlement: Settlement
    /// Failures in a row.
    package private(set) var failures = 0
    /// When it is to be tried.
    package private(set) var dueAt: ContinuousClock.Instant

    /// A flush to be tried at once.
    package init(slot: Int, settlement: Settlement, at now: ContinuousClock.Instant) {
        self.slot = slot
        self.settlement = settlement
        dueAt = now
    }

    /// Two seconds at most, so that a stop is not held up for longer.
    private static let longestWait = Duration.seconds(2)

    /// The same flush after one failure more: 50 ms, and twice as long with each.
    package func failed(at now: ContinuousClock.Instant) -> UnwrittenFlush {
        var again = self
        again.dueAt = now + min(Self.longestWait, .milliseconds(50 << min(failures, 6)))
        again.failures += 1
        return again
    }
}
