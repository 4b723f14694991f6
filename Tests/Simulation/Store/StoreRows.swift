import OutboxCore

/// One row of `outbox`, with what the claim needs of its kind.
struct NotificationRow {
    let identifier: Identifier
    let key: String
    /// Under which a device shows at most one notification.
    let collapseKey: String
    let tenant: Int32
    let principal: String
    let subject: String?
    let thread: String?
    /// Empty once it was erased.
    var payload: String
    let kind: KindNumber
    let urgency: Int16
    let createdAt: Timestamp
    let plannedAt: Timestamp
    let expiresAt: Timestamp
    let onlyDevice: Int64?
    let exceptDevice: Int64?
    /// Which notification an operator enqueued anew by this one.
    let predecessor: Identifier?
    /// What it was queued for at once.
    let routes: [RouteNumber]
    /// Whether the dispatcher sees it; not after a restore that lacks it.
    var isVisible = true
}

/// One row of `queue`: a dispatch that waits.
struct QueueRow {
    var dueAt: Timestamp
    let notification: Identifier
    var cursor = PageCursor.start
    let tenant: Int32
    let route: RouteNumber
    var crashes: Int16 = 0
    let urgency: Int16
    var attempt: Int16 = 0
    var prior = false
}

/// One row of `leases`: a claimed batch.
struct LeaseRow {
    let batch: Identifier
    let owner: Identifier
    let claimedAt: Timestamp
    var until: Timestamp
    let route: RouteNumber
    /// The rows as they were claimed; their attempt is the one that the claim began.
    let rows: [QueueRow]
    /// Whom the worker was told to send to: index of the row, device.
    let targets: [(row: Int, device: Int64)]
    var isOpen: [Bool]

    var openCount: Int { isOpen.reduce(0) { $0 + ($1 ? 1 : 0) } }
}

/// One row of `deliveries`.
struct DeliveryRow {
    let identifier: Identifier
    let notification: Identifier
    let batch: Identifier
    let device: Int64
    let tokenSequence: Int32?
    let route: RouteNumber
    let attempt: Int16
    let outcome: OutcomeKind
    let status: Int16
    let reason: String
    let isFinal: Bool
    let isLate: Bool
    var retryAt: Timestamp?
}

/// One row of `settlements`.
struct SettlementRow: Equatable {
    let notification: Identifier
    /// Nil for the whole notification.
    let route: RouteNumber?
    let status: String
    let reason: String
}

/// One row of `devices`.
struct DeviceRow {
    /// The states of a device that the simulation knows.
    enum Status: String {
        case active, disabled, revoked
    }

    let number: Int64
    let tenant: Int32
    let principal: String
    let client: String
    var route: RouteNumber
    var token: String?
    var tokenSequence: Int32 = 0
    var registeredAt: Timestamp?
    var status = Status.active
    var disabledReason: String?
    var failures: Int32 = 0
    /// When a success is next worth writing down; the distant past stands for "at once".
    var successDueAt = Timestamp.distantPast
    /// When it last came from another route.
    var reroutedAt = Timestamp.distantPast
    var mutes = false

    var isLive: Bool { token != nil && status == .active }
}

/// One row of `workers`.
struct WorkerRow {
    let owner: Identifier
    var heartbeatAt: Timestamp
    var stoppedAt: Timestamp?
}

extension Timestamp {
    /// Before every reading of a clock.
    static let distantPast = Timestamp(microseconds: .min / 2)
}
