/// Rations the search for shares that have work.
///
/// The search reads each share from its beginning. While a long transaction keeps dead index entries alive, that costs
/// more with every row settled since, so the next search waits for 20 times the cost of the last one (at least 5 ms, at
/// most 10 s). Meanwhile the shares that had work lately are claimed from as they are known: their claims start at
/// their low-water marks and cost the same as ever. A share that nobody has seen yet waits for the search.
///
/// As long as a search costs no more than the claims since, it is allowed, whatever time has passed: as a rule before
/// each claim, so that who comes new while a backlog is worked off is found by the second claim from then. At most it
/// doubles what claims cost; a search that has become dearer is rationed.
///
/// A search of 0.3 ms is allowed again after 6 ms, one of 40 ms after 0.8 s, if the one before it cost as much: what is
/// slow once had to wait for the network, a disk or a processor, and says nothing of the next one. Both are allowed
/// after a claim of 50 ms.
package struct ShareScan: Equatable, Sendable {
    private var recent: [WaitingShare] = []
    private var untried: [WaitingShare] = []
    private var allowedAt: ContinuousClock.Instant?
    private var expectedCost = Duration.zero
    /// What the claims since the search cost; nil when there was none.
    private var costOfClaims: Duration?
    private var hasRested = false
    private var lastCost = Duration.zero
    /// Shares remembered: as many as a search answers for one route.
    private let limit: Int

    /// A worker that knows no share yet.
    package init(limit: Int = 64) {
        self.limit = limit
    }

    /// How long a scan that reads from the beginning is not repeated, by what the last one cost.
    package static func pause(after cost: Duration) -> Duration {
        min(max(cost * 20, .milliseconds(5)), .seconds(10))
    }

    /// How long until a search is allowed; nil when it is.
    package func untilAllowed(at now: ContinuousClock.Instant) -> Duration? {
        if let costOfClaims, expectedCost <= costOfClaims { return nil }
        return allowedAt.flatMap { $0 > now ? now.duration(to: $0) : nil }
    }

    /// A claim took rows, and cost so much.
    package mutating func claimed(cost: Duration) {
        costOfClaims = (costOfClaims ?? .zero) + cost
    }

    /// A search ended: it found `shares`, or failed (nil).
    package mutating func ended(
        _ shares: [WaitingShare]?, cost: Duration, at now: ContinuousClock.Instant
    ) {
        // One that failed has run into its timeout: it is not repeated at once.
        expectedCost = shares == nil ? cost : min(cost, lastCost)
        allowedAt = now + Self.pause(after: expectedCost)
        lastCost = cost
        costOfClaims = nil
        hasRested = false
        if let shares {
            recent = Array((shares + recent.filter { old in !shares.contains { old.isSame(as: $0) } }).prefix(limit))
        }
        untried = recent
    }

    /// The worker rests, and every known share may have rows again when it looks the next time. Answers how long until
    /// a search that is owed: nil when the last look was one.
    package mutating func rest(at now: ContinuousClock.Instant) -> Duration? {
        defer {
            untried = recent
            hasRested = true
        }
        return hasRested ? untilAllowed(at: now) ?? .zero : nil
    }

    /// What may be claimed at `time` without a search.
    package func known(at time: Timestamp) -> WaitingWork {
        let due = untried.map {
            WaitingShare(route: $0.route, crashClass: $0.crashClass, share: $0.share, dueAt: time)
        }
        return WaitingWork(now: time, shares: due)
    }

    /// A claim took nothing from its shares; answers whether others are left to be tried.
    package mutating func othersAreLeft(after claim: ClaimRequest) -> Bool {
        untried.removeAll { $0.route == claim.route && $0.crashClass == claim.crashClass }
        return !untried.isEmpty
    }
}

extension WaitingShare {
    fileprivate func isSame(as other: WaitingShare) -> Bool {
        route == other.route && crashClass == other.crashClass && share == other.share
    }
}
