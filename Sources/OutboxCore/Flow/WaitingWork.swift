/// A share with work on one of the asked-for routes.
package struct WaitingShare: Equatable, Sendable {
    /// The route.
    package let route: RouteNumber
    /// The crash class of the rows.
    package let crashClass: CrashClass
    /// The share.
    package let share: Share
    /// When the first of its rows is (or was) due.
    package let dueAt: Timestamp

    /// A share as the scan found it.
    package init(route: RouteNumber, crashClass: CrashClass, share: Share, dueAt: Timestamp) {
        self.route = route
        self.crashClass = crashClass
        self.share = share
        self.dueAt = dueAt
    }
}

/// What waits, as far as a bounded scan saw.
package struct WaitingWork: Equatable, Sendable {
    /// The database's time.
    package let now: Timestamp
    /// Shares with rows, due or not yet due.
    package let shares: [WaitingShare]

    /// The answer of a scan.
    package init(now: Timestamp, shares: [WaitingShare]) {
        self.now = now
        self.shares = shares
    }
}
