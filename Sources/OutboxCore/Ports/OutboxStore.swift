/// The outbox, as the worker sees it. Every call is one statement or one function call in autocommit; none waits on a
/// row or key that a producer or a back end can hold.
package protocol OutboxStore: Sendable {
    /// The registry of routes.
    func routes() async throws(StoreError) -> [Route]
    /// The catalog of kinds.
    func kinds() async throws(StoreError) -> [Kind]
    /// The hooks of kinds.
    func hooks() async throws(StoreError) -> [KindHook]
    /// Asks the hooks of one kind, one after the other, about notifications; each within its own timeout, and on a
    /// session that nothing else waits for.
    func ask(_ hooks: [KindHook], about notifications: [Identifier]) async throws(HookFault) -> [HookReply]
    /// Says who is dispatching, how the lanes stand, which routes they serve and which kinds' hooks fail; repeated as a
    /// heartbeat. Answers the database's time.
    func register(
        lanes: [LaneReport], hooks: [HookReport], version: String
    ) async throws(StoreError) -> Timestamp
    /// Since when every session of the store has stood; nil while one is down.
    func connectedSince() async -> ContinuousClock.Instant?
    /// Takes the worker out of the registry.
    func unregister() async throws(StoreError)

    /// Shares with work on these routes: a bounded, rotating loose index scan, so that no tenant hides behind another.
    func waitingWork(on routes: [RouteNumber]) async throws(StoreError) -> WaitingWork
    /// Moves rows from the queue into one lease. Nil when none was there.
    func claim(_ request: ClaimRequest) async throws(StoreError) -> ClaimedBatch?
    /// Writes one flush. Content that the database refuses is narrowed down by halves, so that one bad value never
    /// holds a batch: its position alone stays on the lease.
    func settle(_ settlement: Settlement) async throws(StoreError) -> SettleReport
    /// Extends leases by `lease` from now on; answers those that are still ours.
    func renew(_ batches: [Identifier], lease: Duration) async throws(StoreError) -> [Identifier]
    /// Leases of claims whose answer was lost go back unsent. Answers how many rows.
    func adopt(_ batches: [Identifier]) async throws(StoreError) -> Int
    /// Recovers leases of anybody that had lapsed by `knownAt`, the caller's last reading of the database's clock: what
    /// lapsed later, the database may have been away for. A lapse counts as a crash only if its claim came after
    /// `healthySince`, or if the registry says that its worker is dead.
    func recover(
        knownAt: Timestamp, healthySince: Timestamp, limit: Int, maxCrashes: Int
    ) async throws(StoreError) -> RecoveryReport
    /// Makes what a wrong configuration stopped on these routes due at once: rows that went back unsent and held
    /// targets, at most `limit` rows. Answers how many; as many as the limit may mean that there are more.
    func retryHeld(on routes: [RouteNumber], limit: Int) async throws(StoreError) -> Int
    /// Evaluates again, for targets of one lease, everything that the claim evaluated; nil marks a target that may be
    /// sent to, a reason one that fell out.
    func recheck(
        _ targets: [RecheckTarget], batch: Identifier, route: RouteNumber
    ) async throws(StoreError) -> [SettlementReason?]
    /// Applies device effects where the stored token is still the one that was sent; answers the indices of those whose
    /// device was locked by somebody, to be tried again. The failure that makes `maxFailures` in a row clears the token
    /// as well; 0 for never.
    func apply(_ effects: [DeviceEffect], maxFailures: Int) async throws(StoreError) -> [Int]
    /// Gives notifications that waited for a first device their routes, or settles them as reaching nobody.
    func resolveUnrouted(limit: Int) async throws(StoreError) -> Int
    /// The oldest notifications on these routes that have been due or on lease for longer than `age`, at most `limit`;
    /// none to all workers but one, so that a fleet warns once.
    func longPending(
        on routes: [RouteNumber], olderThan age: Duration, limit: Int
    ) async throws(StoreError) -> [LongPending]
    /// Routes that no live worker serves, though work waits on them.
    func unservedRoutes() async throws(StoreError) -> [RouteNumber]
    /// Makes the ledger's partitions of the coming days.
    func preparePartitions() async throws(StoreError)
    /// Removes a batch of what was kept long enough, as the policies of the database have it, on a session that nothing
    /// else waits for; answers whether there is more. Never what is open.
    func retain() async throws(StoreError) -> Bool

    /// Tries to hold the awake keys of these routes, so that producers need not notify; answers those held.
    func holdAwake(_ routes: [RouteNumber]) async throws(StoreError) -> [RouteNumber]
    /// Lets go of the awake keys.
    func releaseAwake() async throws(StoreError)
}

extension OutboxStore {
    /// A store without hooks has none.
    package func hooks() async throws(StoreError) -> [KindHook] { [] }

    /// A store without hooks lets nothing through that has some.
    package func ask(
        _ hooks: [KindHook], about notifications: [Identifier]
    ) async throws(HookFault) -> [HookReply] {
        throw HookFault(hooks.first?.purpose, .unusable)
    }
}
