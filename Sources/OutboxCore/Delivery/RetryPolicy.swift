/// When a target is tried again after a failed attempt, and when no more.
package enum RetryPolicy: Equatable, Sendable {
    /// A closed list: the wait after the first, second, … failed attempt; after the last one the target is final.
    case list([Duration])
    /// `base` doubled with each attempt up to `cap`, until the deadline: base 2 s, cap 5 min gives 2, 4, 8, … 300, 300
    /// s.
    case exponential(base: Duration, cap: Duration)

    /// What a kind without a policy of its own gets: 30 s, 2 min, 10 min, 1 h.
    package static let standard = RetryPolicy.list([.seconds(30), .seconds(120), .seconds(600), .seconds(3600)])

    /// The wait after `spent` attempts (1 or more) have failed, before jitter; nil when there is no further attempt.
    package func delay(afterAttempts spent: Int) -> Duration? {
        precondition(spent >= 1, "a retry follows an attempt")
        switch self {
        case .list(let delays):
            return spent <= delays.count ? delays[spent - 1] : nil
        case .exponential(let base, let cap):
            // Beyond 32 doublings every sensible base has long reached its cap.
            return min(cap, base * (1 << min(spent - 1, 32)))
        }
    }
}
