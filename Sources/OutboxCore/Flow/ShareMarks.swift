/// How far each share was read, and when it may be read from its beginning again.
///
/// A mark keeps the claim flat while a long transaction pins the horizon and dead entries pile up before it. What
/// appears behind a mark (a late commit, another worker's release) is found by a full scan, which is rationed by its
/// own cost: one is allowed when 20 times the cost of the last one has passed since it, or of the one before if that
/// was less, at least 5 ms and at most 10 s.
package struct ShareMarks: Equatable, Sendable {
    private struct Key: Hashable, Sendable {
        let route: RouteNumber
        let crashClass: CrashClass
        let share: Share
    }

    private struct Entry: Equatable, Sendable {
        var mark = LowWaterMark.start
        var fullScanAllowedAt: ContinuousClock.Instant?
        var lastCost = Duration.zero
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
            let allowed = entry.fullScanAllowedAt, now < allowed
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
                entry.mark = .start
                entry.fullScanAllowedAt = now + ShareScan.pause(after: min(cost, entry.lastCost))
                entry.lastCost = cost
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
