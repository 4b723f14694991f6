/// How far a claim has read a share: rows before it were taken, so the next claim starts behind the dead entries.
package struct LowWaterMark: Equatable, Sendable {
    /// Due instant of the last row taken.
    package let dueAt: Timestamp
    /// Its notification, which breaks ties.
    package let notification: Identifier

    /// A mark behind one row.
    package init(dueAt: Timestamp, notification: Identifier) {
        self.dueAt = dueAt
        self.notification = notification
    }

    /// Before every row: a full scan of the share.
    package static let start = LowWaterMark(
        dueAt: Timestamp(microseconds: -210_866_803_200_000_000), notification: Identifier(high: 0, low: 0))
}

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

/// One target to be checked again before it is sent to.
package struct RecheckTarget: Equatable, Sendable {
    /// The notification.
    package let notification: Identifier
    /// The device.
    package let device: Int64
    /// The token that would be sent.
    package let tokenSequence: Int32

    /// A target to be checked.
    package init(notification: Identifier, device: Int64, tokenSequence: Int32) {
        self.notification = notification
        self.device = device
        self.tokenSequence = tokenSequence
    }
}

/// Lapsed leases that were recovered.
package struct RecoveryReport: Equatable, Sendable {
    /// Leases deleted.
    package let leases: Int
    /// Rows that went back to the queue.
    package let rows: Int
    /// `unknown` rows written for what may have been sent.
    package let unknowns: Int
    /// Rows set aside as `failed` after too many crashes.
    package let setAside: Int

    /// What one recovery did.
    package init(leases: Int, rows: Int, unknowns: Int, setAside: Int) {
        self.leases = leases
        self.rows = rows
        self.unknowns = unknowns
        self.setAside = setAside
    }
}

/// Why a statement of the store did not do its work.
package struct StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// How the caller goes on.
    package enum Kind: Equatable, Sendable {
        /// The connection failed: whether the statement was carried out is unknown. Repeat, or adopt.
        case connection
        /// The database asks to try again (deadlock, serialization, lock or statement timeout).
        case transient
        /// The database refused the statement.
        case refused
        /// The answer could not be read: a schema that this worker does not know.
        case incompatible
    }

    /// How the caller goes on.
    package let kind: Kind
    /// The statement's name.
    package let operation: String
    /// The server's SQLSTATE; empty where no server answered.
    package let sqlState: String
    /// What happened, without any value of a row.
    package let message: String

    /// A failure of the store.
    package init(kind: Kind, operation: String, sqlState: String = "", message: String) {
        self.kind = kind
        self.operation = operation
        self.sqlState = sqlState
        self.message = message
    }

    package var description: String {
        sqlState.isEmpty ? "\(operation): \(message)" : "\(operation): \(message) (SQLSTATE \(sqlState))"
    }
}

/// The outbox, as the worker sees it. Every call is one statement or one function call in autocommit; none waits on a
/// row or key that a producer or a back end can hold.
package protocol OutboxStore: Sendable {
    /// The registry of routes.
    func routes() async throws(StoreError) -> [Route]
    /// The catalog of kinds.
    func kinds() async throws(StoreError) -> [Kind]
    /// Says who is dispatching and which routes are served; repeated as a heartbeat. Answers the database's time.
    func register(routes: [RouteNumber], version: String) async throws(StoreError) -> Timestamp
    /// Takes the worker out of the registry.
    func unregister() async throws(StoreError)

    /// Shares with work on these routes: a bounded, rotating loose index scan, so that no tenant hides behind another.
    func waitingWork(on routes: [RouteNumber]) async throws(StoreError) -> WaitingWork
    /// Moves rows from the queue into one lease. Nil when none was there.
    func claim(_ request: ClaimRequest) async throws(StoreError) -> ClaimedBatch?
    /// Writes one flush. Content that the database refuses is narrowed down by halves, so that one bad value never
    /// holds a batch.
    func settle(_ settlement: Settlement) async throws(StoreError) -> SettleReport
    /// Extends leases by `lease` from now on; answers those that are still ours.
    func renew(_ batches: [Identifier], lease: Duration) async throws(StoreError) -> [Identifier]
    /// Leases of claims whose answer was lost go back unsent. Answers how many rows.
    func adopt(_ batches: [Identifier]) async throws(StoreError) -> Int
    /// Recovers lapsed leases of anybody. A lapse counts as a crash only if it began after `healthySince`.
    func recover(healthySince: Timestamp, limit: Int, maxCrashes: Int) async throws(StoreError) -> RecoveryReport
    /// Evaluates again, for targets of one lease, everything that the claim evaluated; nil marks a target that may be
    /// sent to, a reason one that fell out.
    func recheck(
        _ targets: [RecheckTarget], batch: Identifier, route: RouteNumber
    ) async throws(StoreError) -> [SettlementReason?]
    /// Applies device effects where the stored token is still the one that was sent; answers the indices of those whose
    /// device was locked by somebody, to be tried again.
    func apply(_ effects: [DeviceEffect]) async throws(StoreError) -> [Int]
    /// Gives notifications that waited for a first device their routes, or settles them as reaching nobody.
    func resolveUnrouted(limit: Int) async throws(StoreError) -> Int
    /// Makes the ledger's partitions of the coming days.
    func preparePartitions() async throws(StoreError)

    /// Tries to hold the awake keys of these routes, so that producers need not notify; answers those held.
    func holdAwake(_ routes: [RouteNumber]) async throws(StoreError) -> [RouteNumber]
    /// Lets go of the awake keys.
    func releaseAwake() async throws(StoreError)
}
