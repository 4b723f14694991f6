/// One share's part of a claim.
package struct ShareCredit: Equatable, Sendable {
    /// The share.
    package let share: Share
    /// The most rows taken from it; the credits of a claim sum to the batch.
    package let rows: Int
    /// Where its scan begins.
    package let mark: LowWaterMark

    /// A share's part.
    package init(share: Share, rows: Int, mark: LowWaterMark) {
        self.share = share
        self.rows = rows
        self.mark = mark
    }
}

/// A claim, named before it is sent, so that a lost answer can be adopted.
package struct ClaimRequest: Equatable, Sendable {
    /// The name of the lease to be.
    package let batch: Identifier
    /// The route.
    package let route: RouteNumber
    /// The crash class.
    package let crashClass: CrashClass
    /// What to take from which share.
    package let credits: [ShareCredit]
    /// Life of the lease.
    package let lease: Duration
    /// The most targets answered per row.
    package let targetsPerRow: Int

    /// A claim to be made.
    package init(
        batch: Identifier, route: RouteNumber, crashClass: CrashClass, credits: [ShareCredit], lease: Duration,
        targetsPerRow: Int
    ) {
        self.batch = batch
        self.route = route
        self.crashClass = crashClass
        self.credits = credits
        self.lease = lease
        self.targetsPerRow = targetsPerRow
    }
}
