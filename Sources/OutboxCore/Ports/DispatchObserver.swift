/// What the runtime tells about its work; logs and metrics are made of it. One method per event, no values of rows.
package protocol DispatchObserver: Sendable {
    /// The worker runs these lanes, which serve these routes now.
    func started(lanes: [String], routes: [Route])
    /// A claim moved rows into a lease.
    func claimed(batch: Identifier, route: RouteNumber, rows: Int, targets: Int)
    /// A flush was written; `outcomes` counts its ledger rows by outcome.
    func settled(batch: Identifier, outcomes: [OutcomeKind: Int], returned: Int, ended: Int)
    /// Results of a lease that is no longer ours.
    func fenced(batch: Identifier, rows: Int)
    /// The database does not take a value of these rows' results: they are left to their lease.
    func refused(batch: Identifier, rows: Int, because error: StoreError)
    /// Lapsed leases were recovered.
    func recovered(_ report: RecoveryReport)
    /// A lane cannot send; `until` is how long it waits before it tries again.
    func laneDown(_ lane: String, reason: String, until: Duration?)
    /// A connection of a lane ended and is replaced.
    func connectionReplaced(_ lane: String, reason: String)
    /// A lane sends again.
    func laneUp(_ lane: String)
    /// A lane was paused, or one route of it: a wrong key, topic or environment, or more than the provider wants.
    /// `routes` are those that stop.
    func lanePaused(_ lane: String, routes: [Route], _ pause: LanePause)
    /// A route was paused, because so many of its targets are refused in the way that `targetHeld` has told of.
    func pauseSpread(_ lane: String, route: Route, _ pause: LanePause)
    /// A probe of a paused lane or route was refused: the pause goes on.
    func lanePauseProlonged(_ lane: String, route: Route?, _ pause: LanePause)
    /// A probe was answered: the pause of a lane or route is over.
    func laneResumed(_ lane: String, route: Route?)
    /// A target is held, and perhaps more of its route: its answer can mean a wrong configuration.
    func targetHeld(_ lane: String, route: Route, status: Int16, reason: String)
    /// A lane's credential was read again; `isAnother` when it is not the one that was in use.
    func credentialRead(_ lane: String, isAnother: Bool)
    /// The provider calls the token of a lane too old right after it was replaced; `clockAhead` is by how much our
    /// clock is ahead of the provider's (negative: behind), where its answer told.
    func freshTokenRefused(_ lane: String, status: Int16, reason: String, clockAhead: Duration?)
    /// A kind of the catalog is one that a lane's provider cannot take; its notifications for that lane fail.
    func kindRefused(_ lane: String, kind: String, because fault: String)
    /// A kind of the catalog is one that this worker cannot read, for what it says: its notifications wait.
    func kindUnreadable(_ kind: String, because what: String)
    /// A kind's hooks have begun to fail: none of its notifications is sent until they answer. Asked again after
    /// `wait`.
    func hooksFail(kind: String, _ fault: HookFault, askedAgainAfter wait: Duration)
    /// A kind's hooks answer again, or were removed; they had failed for so long.
    func hooksAnswer(kind: String, after duration: Duration)
    /// A notification has been due for long and is still pending; `route` is nil while the registry is not read.
    func longPending(_ pending: LongPending, route: Route?)
    /// There may be more like the last ones: a look is bounded.
    func moreLongPending()
    /// Work waits on a route that no live worker serves.
    func routeUnserved(_ route: Route)
    /// A statement failed and will be repeated.
    func storeFailed(_ error: StoreError)
    /// The database can be reached again.
    func storeRecovered()
    /// The database's clock was set: recoveries wait for one lease.
    func databaseClockStepped()
    /// The worker stops: what it still has in flight.
    func draining(inFlight: Int)
    /// The worker stopped.
    func stopped(released: Int)
}
