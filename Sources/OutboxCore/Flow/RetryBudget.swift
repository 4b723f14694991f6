/// Keeps retries a share of first sends, so that a provider in trouble is not asked more for being in trouble.
///
/// Each first send earns a part of a retry; each retry costs one, and gives back two when it is accepted, so that
/// after an outage retries double with each round trip. Whoever has nothing left may still try once a minute; the last
/// tenth of what was earned, ten at most, is kept for that, so that minutes of an outage cost no more than was earned.
///
/// At 10 %: 1000 first sends earn 100 retries, of which 90 go out at once and one a minute; 100 retries that all
/// succeed leave 200.
package struct RetryBudget: Equatable, Sendable {
    /// Most retries that can be saved up.
    package static let cap = 1000
    /// Retries that a lane may begin with: single failures after a start are no storm. They are an advance on what it
    /// will earn.
    package static let start = 10
    /// How often a retry is allowed whatever the budget says.
    package static let allowanceInterval = Duration.seconds(60)
    /// The most that is kept for one retry a minute.
    package static let reserveLimit = 10
    /// How long a refused retry waits while others are under way and may earn more.
    package static let refillDelay = Duration.seconds(1)

    private let percent: Int
    /// In hundredths of a retry; below zero by what was allowed without being earned.
    private var balance = start * 100
    /// What is still to be earned of the retries that it began with, in hundredths.
    private var advance = start * 100
    /// What is not spent but once a minute, in hundredths; nothing while the provider accepts retries.
    private var reserve = 0
    private var retriedAt: ContinuousClock.Instant?
    private var underWay = 0

    /// A budget of so many percent of first sends.
    package init(percent: Int) {
        self.percent = percent
    }

    /// First attempts were sent.
    package mutating func earned(_ firstSends: Int) {
        let gain = firstSends * percent
        let repaid = min(advance, gain)
        advance -= repaid
        balance = min(Self.cap * 100, balance + gain - repaid)
        reserve = min(Self.reserveLimit * 100, reserve + gain / 10)
    }

    /// Takes one retry out; false when it has to wait.
    package mutating func take(at now: ContinuousClock.Instant) -> Bool {
        guard balance >= 100 + reserve / 100 * 100 || isAllowed(at: now) else { return false }
        balance -= 100
        retriedAt = now
        underWay += 1
        return true
    }

    /// What became of a retry that was let out.
    package enum End: Equatable, Sendable {
        /// The provider accepted it.
        case accepted
        /// It was asked, and was not accepted.
        case spent
        /// It was never sent.
        case unsent
    }

    /// A retry ended.
    package mutating func ended(_ end: End) {
        underWay = max(0, underWay - 1)
        switch end {
        case .accepted:
            balance = min(Self.cap * 100, max(0, balance) + 200)
            reserve = 0
        case .spent: break
        case .unsent: balance = min(Self.cap * 100, balance + 100)
        }
    }

    /// How long a refused retry waits.
    package func wait(at now: ContinuousClock.Instant) -> Duration {
        guard underWay == 0, let retriedAt else { return Self.refillDelay }
        return max(Self.refillDelay, now.duration(to: retriedAt + Self.allowanceInterval))
    }

    private func isAllowed(at now: ContinuousClock.Instant) -> Bool {
        guard underWay == 0, let retriedAt else { return underWay == 0 }
        return retriedAt + Self.allowanceInterval <= now
    }
}
