import OutboxCore

/// The life of one notification as the database knows it at one moment.
struct NotificationLife: Equatable, Sendable {
    /// The database's time.
    var now: Timestamp
    /// For how long a row may be due before it counts as stuck.
    var stuckAfter: Duration
    var head: Head
    /// Where its open work is; empty when nothing is open.
    var places: [Place] = []
    /// Oldest first.
    var attempts: [LedgerEntry] = []
    /// The attempts that decided about their device.
    var deciding: Set<Identifier> = []
    /// Ends other than by attempts, oldest first.
    var ends: [End] = []
    /// What a hook of its kind fails by, if one does.
    var hook: HookStatus?
    /// Whether any worker is alive: whichever it is takes over lapsed leases and ends what is overdue.
    var workerIsAlive = true

    /// What was decided when it was enqueued, and what became of it.
    struct Head: Equatable, Sendable {
        var id: Identifier
        var tenant: String
        var principal: String
        var kind: String
        var dedupeKey: String
        var subject: String?
        var thread: String?
        var urgency: String
        var isSilent = false
        /// The only device it is for, or the one it is not for.
        var onlyDevice: Identifier?
        var exceptDevice: Identifier?
        var createdAt: Timestamp
        var plannedAt: Timestamp
        /// When its producer did not want it before; nil where the kind decided.
        var notBefore: Timestamp?
        /// The deadline.
        var expiresAt: Timestamp
        /// Derived: pending, dispatched, failed, expired, superseded or cancelled.
        var status: String
        var reason: String?
        var settledAt: Timestamp?
        /// When its subject was declared over, if it was, also when nobody has ended it yet.
        var supersededAt: Timestamp?
    }

    /// Open work on one route: it waits in the queue, or a worker holds it on lease.
    struct Place: Equatable, Sendable {
        var routeNumber: Int
        /// Who serves the route, and how its best lane is.
        var service: RouteStatus
        /// When it may be claimed, in the queue; when the lease runs out, on lease.
        var at: Timestamp
        /// Attempts made, the one under way included.
        var attempt: Int
        /// How often its worker died.
        var crashes: Int
        /// Nil in the queue.
        var lease: Lease?
    }

    /// Who holds it.
    struct Lease: Equatable, Sendable {
        var batch: Identifier
        var claimedAt: Timestamp
        /// Nil where the registry has lost the worker.
        var worker: String?
        var workerState: WorkerStatus.State
        var heartbeatAt: Timestamp?
    }

    /// An end other than by attempts: of one route, or of the whole.
    struct End: Equatable, Sendable {
        var at: Timestamp
        /// Nil: the whole notification.
        var route: String?
        var status: String
        var reason: String
    }
}
