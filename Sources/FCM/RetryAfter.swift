import HTTP2

/// How long an answer asks to wait (RFC 9110 10.2.3): `retry-after` in seconds, or as a date.
enum RetryAfter {
    /// Longer waits are cut to this: after it one row is tried, and the next answer says whether to wait on.
    static let limit = Duration.seconds(3600)
    private static let digitLimit = 10

    /// The wait; nil when `value` is absent, unreadable, or over already. A date is meant on the sender's clock, which
    /// the answer's own `date` shows; `now` (seconds since the Unix epoch) stands in where it has none.
    static func wait(_ value: ArraySlice<UInt8>, date: ArraySlice<UInt8>, now: Int64) -> Duration? {
        guard !value.isEmpty else { return nil }
        let seconds = whole(value) ?? HTTPDate.seconds(value).map { $0 - (HTTPDate.seconds(date) ?? now) }
        guard let seconds, seconds > 0 else { return nil }
        return min(limit, .seconds(seconds))
    }

    private static func whole(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard digits.count <= digitLimit, digits.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int64($1 - 48) }
    }
}
