/// The header `retry-after` of an answer (RFC 9110 10.2.3), in either of its forms.
package enum RetryAfter: Equatable, Sendable {
    /// A number of seconds.
    case seconds(Int64)
    /// An HTTP date this many seconds ahead of the stand-in's clock.
    case date(secondsAhead: Int64)

    /// The header's value at `clock`.
    func text(at clock: WallClock) -> String {
        switch self {
        case .seconds(let seconds): String(seconds)
        case .date(let seconds): WallClock.httpDate(clock.microseconds / 1_000_000 + seconds)
        }
    }
}
