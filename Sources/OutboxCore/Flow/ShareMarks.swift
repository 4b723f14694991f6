/// How far each share was read, and when it may be read from its beginning again.
///
/// A mark keeps the claim flat while a long transaction pins the horizon and dead entries pile up before it. What
/// appears behind a mark (a late commit, another worker's release) is found by a full scan, which is rationed by its
/// own cost: one is allowed when 20 times the cost of the last one has passed since it, or of the one before if that
/// was less, at least 5 ms and at most 10 s.
///
/// As long as it costs hardly more than a claim that begins at the mark, there is no reason to wait: it is allowed as
/// soon as the claims since have cost four times what it takes more than one of them. So it adds a quarter at most.
package struct ShareMarks: Equatable, Sendable {
    private struct Key: Hashable, Sendable {
        let route: RouteNumber
        let crashClass: CrashClass
        let share: Share
    }

    private struct Entry: Equatable, Sendable {
        var mark = LowWaterMark.start
        private var fullScanAllowedAt: ContinuousClock.Instant?
        private var lastCost = Duration.zero
        /// What the next full scan should cost.
        private var expectedCost = Duration.zero
        /// Claims that began at the mark since the last full scan, and what they cost together.
        private var claims = 0
        private var costOfClaims = Duration.zero

        func allowsFullScan(at now: ContinuousClock.Instant) -> Bool {
            guard let fullScanAllowedAt, now < fullScanAllowedAt else { return true }
            guard claims > 0 else { return false }
            return costOfClaims >= (expectedCost - costOfClaims / claims) * 4
        }

        mutating func scannedInFull(cost: Duration, at now: ContinuousClock.Instant) {
            expectedCost = min(cost, lastCost)
            fullScanAllowedAt = now + ShareScan.pause(after: expectedCost)
            lastCost = cost
            mark = .start
            claims = 0
            costOfClaims = .zero
        }

        mutating func claimedFromMark(cost: Duration) {
            claims += 1
            costOfClaims += cost
        }
    }

    private var entries: [Key: Entry] = [:]
    /// Shares beyond this many are forgotten all at once: a full scan each is the only price.
    private let limit: Int

    /// Marks of at most `limit` shares.
    package init(limit: Int = 10_000) {
        self.limit = limit
    }

    /// Where a claim of this share begins.
    package func mark(
        route: RouteNumber, crashClass: CrashClass, share: Share, at now: ContinuousClock.Instant
    ) -> LowWaterMark {
        guard let entry = entries[Key(route: route, crashClass: crashClass, share: share)],
            !entry.allowsFullScan(at: now)
        else { return .start }
        return entry.mark
    }

    /// A claim ended: it took rows up to `last` (nil for none) of a share whose scan began at `from`.
    package mutating func claimed(
        _ request: ClaimRequest, last: [Share: LowWaterMark], cost: Duration, at now: ContinuousClock.Instant
    ) {
        if entries.count > limit { entries.removeAll() }
        for credit in request.credits {
            let key = Key(route: request.route, crashClass: request.crashClass, share: credit.share)
            var entry = entries[key] ?? Entry()
            if credit.mark == .start {
                entry.scannedInFull(cost: cost, at: now)
            } else {
                entry.claimedFromMark(cost: cost)
            }
            if let last = last[credit.share] { entry.mark = last }
            entries[key] = entry
        }
    }

    /// Rows went back behind the marks (our own recovery): the next scans begin at the beginning.
    package mutating func reset() {
        entries.removeAll(keepingCapacity: true)
    }
}
