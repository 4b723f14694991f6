/// How long to wait before the next attempt to connect.
///
/// The ceiling after `n` failures in a row is `min(cap, base · 2^(n-1))`; the wait is drawn evenly from its upper half,
/// so that many workers do not return to a restarted server together. The cap is what a server that is back is left
/// waiting for: all sessions of a worker stand again within five seconds of its return.
///
/// | failures | ceiling (base 100 ms, cap 4 s) | wait        |
/// | -------- | ------------------------------ | ----------- |
/// | 1        | 100 ms                         | 50–100 ms   |
/// | 4        | 800 ms                         | 400–800 ms  |
/// | 7        | 4 s (6.4 s capped)             | 2–4 s       |
package struct ReconnectBackoff: Sendable, Equatable {
    /// Ceiling after the first failure.
    package let base: Duration
    /// Highest ceiling.
    package let cap: Duration
    /// A session that lived this long counts as a success; one that ends sooner counts as a failure more, so that a
    /// server that accepts and drops at once is not stormed.
    package let stableAfter: Duration

    /// `base` must be positive and not above `cap`.
    package init(
        base: Duration = .milliseconds(100), cap: Duration = .seconds(4), stableAfter: Duration = .seconds(10)
    ) {
        precondition(base > .zero && cap >= base, "a backoff needs 0 < base <= cap")
        self.base = base
        self.cap = cap
        self.stableAfter = stableAfter
    }

    /// The wait after `failures` (from 1) in a row; `random` in 0..<1 places it between half the ceiling and the
    /// ceiling.
    package func delay(afterFailures failures: Int, random: Double) -> Duration {
        precondition(failures >= 1 && random >= 0 && random < 1, "failures count from 1, random lies in 0..<1")
        var ceiling = base
        for _ in 1..<failures {
            ceiling *= 2
            if ceiling >= cap { break }
        }
        ceiling = min(ceiling, cap)
        return ceiling * (0.5 + random / 2)
    }
}
