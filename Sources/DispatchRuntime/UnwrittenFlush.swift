import OutboxCore

/// A flush on its way into the database, and what has become of that so far. It may be repeated as often as it takes;
/// meanwhile its lease is renewed.
struct UnwrittenFlush: Sendable {
    /// The slot of its lease.
    let slot: Int
    /// What is to be written.
    let settlement: Settlement
    /// Failures in a row.
    private(set) var failures = 0
    /// When it is to be tried.
    private(set) var dueAt = ContinuousClock.now

    init(slot: Int, settlement: Settlement) {
        self.slot = slot
        self.settlement = settlement
    }

    /// Two seconds at most, so that a stop is not held up for longer.
    private static let longestWait = Duration.seconds(2)

    /// The same flush after one failure more: 50 ms, and twice as long with each.
    func failed(at now: ContinuousClock.Instant) -> UnwrittenFlush {
        var again = self
        again.dueAt = now + min(Self.longestWait, .milliseconds(50 << min(failures, 6)))
        again.failures += 1
        return again
    }
}
