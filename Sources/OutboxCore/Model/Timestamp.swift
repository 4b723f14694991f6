/// An instant of the database's clock, the only clock whose readings are stored.
///
/// The worker never compares one with its own wall clock; it carries the database's time forward by its monotonic clock
/// (`DatabaseClock`).
package struct Timestamp: Hashable, Comparable, Sendable {
    /// Microseconds since the Unix epoch, UTC.
    package let microseconds: Int64

    /// An instant by its microseconds since the Unix epoch.
    package init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.microseconds < right.microseconds
    }

    /// The instant `duration` later, in whole microseconds.
    package static func + (instant: Timestamp, duration: Duration) -> Timestamp {
        Timestamp(microseconds: instant.microseconds + duration.wholeMicroseconds)
    }

    /// How much later `later` is than `earlier`; negative when it is earlier.
    package static func - (later: Timestamp, earlier: Timestamp) -> Duration {
        .microseconds(later.microseconds - earlier.microseconds)
    }

    /// Whole seconds since the Unix epoch, rounded up: what APNs takes as an expiration.
    package var secondsRoundedUp: Int64 {
        microseconds / 1_000_000 + (microseconds % 1_000_000 > 0 ? 1 : 0)
    }
}

extension Duration {
    /// The duration in microseconds, rounded toward zero.
    package var wholeMicroseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
