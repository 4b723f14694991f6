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
///
/// Who rings need not have brought anything: any role may notify. So looks at the known shares that take nothing are
/// rationed like searches, by their own cost, from the fourth in a row; the first three are free, because what a
/// notification was about may have been taken by another worker.
package struct ShareScan: Equatable, Sendable {
    private var recent: [WaitingShare] = []
    private var untried: [WaitingShare] = []
    private var allowedAt: ContinuousClock.Instant?
    private var expectedCost = Duration.zero
    /// What the claims since the search cost; nil when there was none.
    private var costOfClaims: Duration?
    private var hasRested = false
    /// Looks in a row that claimed and took nothing; what the claims of the present one cost.
    private var emptyLooks = 0
    private var costOfLook = Duration.zero
    private var looksAt: ContinuousClock.Instant?
    private var lastCost = Duration.zero
    /// Shares remembered: as many as a search answers for one route.
    private let limit: Int

    /// Looks in a row that take nothing before they are rationed.
    package static let freeLooks = 3

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
        (emptyLooks, costOfLook, looksAt) = (0, .zero, nil)
    }

    /// A claim took nothing, and cost so much.
    package mutating func missed(cost: Duration) {
        costOfLook += cost
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
    /// a look that is owed: nil when the last one was a search.
    package mutating func rest(at now: ContinuousClock.Instant) -> Duration? {
        if costOfLook > .zero {
            emptyLooks = min(emptyLooks + 1, Self.freeLooks + 1)
            if emptyLooks > Self.freeLooks { looksAt = now + Self.pause(after: costOfLook) }
        }
        defer {
            untried = recent
            hasRested = true
            costOfLook = .zero
        }
        guard hasRested else { return nil }
        let untilSearch = untilAllowed(at: now) ?? .zero
        return looksAt.map { $0 > now ? min(untilSearch, now.duration(to: $0)) : untilSearch } ?? untilSearch
    }

    /// What may be claimed at `now`, which is `time` by the database's clock, without a search.
    package func known(at time: Timestamp, now: ContinuousClock.Instant) -> WaitingWork {
        if let looksAt, looksAt > now { return WaitingWork(now: time, shares: []) }
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
