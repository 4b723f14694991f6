/// When a provider token is made anew, and which `iat` it carries.
///
/// Apple refuses tokens older than an hour and answers 429 to ones that change more often than every 20 minutes. All
/// processes of a team must therefore present the same (`kid`, `iat`) without talking to each other: `iat` lies on a
/// grid of `refreshAge`. One that starts late in a step of the grid would have to mint again a moment later; it takes a
/// second common point, 20 minutes before the step's end, and joins the grid at its next mint.
///
///     refreshAge 40 min, grid at 12:00, 12:40, 13:20
///     first mint 12:05 ─► iat 12:00, next mint 12:40 (iat 12:40)
///     first mint 12:35 ─► iat 12:20, next mint 12:55 (iat 12:40), then 13:20 (iat 13:20)
///
/// No token is used beyond the greater of `refreshAge` and 40 minutes, and no process mints twice within 20.
package struct TokenSchedule: Equatable, Sendable {
    /// Shortest time between two mints that Apple accepts, in seconds.
    package static let shortestInterval: Int64 = 20 * 60
    /// Longest refresh age: what remains of Apple's hour is for clocks that differ.
    package static let longestRefreshAge: Int64 = 55 * 60

    /// Age, counted from `iat`, at which a token is made anew; whole seconds.
    package let refreshAge: Int64

    /// Nil when `refreshAge` is outside 20 to 55 minutes.
    package init?(refreshAge: Duration) {
        let seconds = refreshAge.components.seconds
        guard (Self.shortestInterval...Self.longestRefreshAge).contains(seconds) else { return nil }
        self.refreshAge = seconds
    }

    /// The `iat` of a token that is made at `now` (seconds since the Unix epoch).
    package func issueTime(at now: Int64) -> Int64 {
        let step = now - Self.remainder(now, refreshAge)
        let late = step + refreshAge - Self.shortestInterval
        return now < late || late <= step ? step : late
    }

    /// The `iat` of a token that is made in place of one with `refused`, and later than that: the last full five
    /// minutes or the last full minute, so that processes which are refused together present one token; else now.
    func replacementTime(at now: Int64, after refused: Int64?) -> Int64 {
        for step in [Int64(5 * 60), 60] {
            let point = now - Self.remainder(now, step)
            if refused.map({ point > $0 }) ?? true { return point }
        }
        return now
    }

    /// How far ahead of us an `iat` may lie before it is a sign that our clock was set back, in seconds.
    private static let aheadLimit: Int64 = 5 * 60

    /// Whether a token with `issuedAt` is to be replaced at `now`: its step of the grid is over, or has not begun.
    package func isDue(issuedAt: Int64, now: Int64) -> Bool {
        if issuedAt > now + Self.aheadLimit { return true }
        let step = issuedAt - Self.remainder(issuedAt, refreshAge)
        return now >= step + refreshAge
    }

    private static func remainder(_ value: Int64, _ divisor: Int64) -> Int64 {
        let rest = value % divisor
        return rest < 0 ? rest + divisor : rest
    }
}
