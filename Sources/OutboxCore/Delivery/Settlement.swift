/// One row of the ledger: a request that left, or a target that was skipped.
package struct LedgerRow: Equatable, Sendable {
    /// The row's own key, made by the worker from the database's time: a repeated flush adds nothing.
    package let identifier: Identifier
    /// The notification.
    package let notification: Identifier
    /// The tenant's small number.
    package let tenant: Int32
    /// The device.
    package let device: Int64
    /// Which token of the device was used.
    package let tokenSequence: Int32
    /// The attempt's number, of the dispatch.
    package let attempt: Int16
    /// What it came to; `kind`, status, reason and the provider's name for it are stored.
    package let outcome: Outcome
    /// Whether nothing more happens to this target of this notification.
    package let isFinal: Bool
    /// How long this target is left out of further claims, from the settle on; nil for no wait.
    package let retryAfter: Duration?
    /// First byte sent; the instant of the decision for a skipped target.
    package let attemptedAt: Timestamp
    /// Answer complete; nil when none came.
    package let answeredAt: Timestamp?

    /// A row to be written.
    package init(
        identifier: Identifier, notification: Identifier, tenant: Int32, device: Int64, tokenSequence: Int32,
        attempt: Int16, outcome: Outcome, isFinal: Bool, retryAfter: Duration?, attemptedAt: Timestamp,
        answeredAt: Timestamp?
    ) {
        self.identifier = identifier
        self.notification = notification
        self.tenant = tenant
        self.device = device
        self.tokenSequence = tokenSequence
        self.attempt = attempt
        self.outcome = outcome
        self.isFinal = isFinal
        self.retryAfter = retryAfter
        self.attemptedAt = attemptedAt
        self.answeredAt = answeredAt
    }
}

/// A position that goes back to the queue: a retry, a release, or the next page of its targets.
package struct QueueReturn: Equatable, Sendable {
    /// Position in the lease, from 1.
    package let position: Int16
    /// Due so long after the settle.
    package let delay: Duration
    /// Attempts of the dispatch that count; one less than claimed when none was spent.
    package let attempt: Int16
    /// Paging cursor for the next claim; 0 for all devices.
    package let afterDevice: Int64
    /// Whether the row has proven harmless, so that its crashes are forgotten.
    package let clearsCrashes: Bool

    /// A position that goes back.
    package init(position: Int16, delay: Duration, attempt: Int16, afterDevice: Int64, clearsCrashes: Bool) {
        self.position = position
        self.delay = delay
        self.attempt = attempt
        self.afterDevice = afterDevice
        self.clearsCrashes = clearsCrashes
    }
}

/// How a notification (or one route of it) ended, other than by final ledger rows alone.
package enum SettlementStatus: Int16, CaseIterable, Sendable {
    case dispatched = 0
    case superseded = 1
    case cancelled = 2
    case expired = 3
    case failed = 4

    /// The name in views and logs.
    package var name: String { "\(self)" }
}

/// The closed list of reasons for a settlement and for a skipped target.
package enum SettlementReason: String, CaseIterable, Sendable {
    case superseded, seen, erased, cancelled, expired, ceiling, rejected, crashes, muted, revoked, coalesced, read
    case noAccess = "no_access"
    case noDevice = "no_device"
    case noToken = "no_token"
    case noCredential = "no_credential"
    case tokenChanged = "token_changed"
}

/// A position that ends by a settlement of its own.
package struct PositionEnd: Equatable, Sendable {
    /// Position in the lease, from 1.
    package let position: Int16
    /// How it ended.
    package let status: SettlementStatus
    /// Why.
    package let reason: SettlementReason
    /// Whether the whole notification ends by it, not this route alone (superseded, cancelled, erased).
    package let wholeNotification: Bool

    /// An end of one position.
    package init(position: Int16, status: SettlementStatus, reason: SettlementReason, wholeNotification: Bool) {
        self.position = position
        self.status = status
        self.reason = reason
        self.wholeNotification = wholeNotification
    }
}

/// One flush of one lease: may be repeated at any time and by any session with the same content.
package struct Settlement: Equatable, Sendable {
    /// The lease.
    package let batch: Identifier
    /// Its route.
    package let route: RouteNumber
    /// How many positions the lease has.
    package let positions: Int
    /// The positions that leave with this flush, ascending, from 1.
    package var leaving: [Int16] = []
    /// Ledger rows, ascending by identifier.
    package var ledger: [LedgerRow] = []
    /// Positions of `leaving` that go back to the queue.
    package var returns: [QueueReturn] = []
    /// Positions of `leaving` that end by a settlement.
    package var ends: [PositionEnd] = []

    /// An empty flush of a lease.
    package init(batch: Identifier, route: RouteNumber, positions: Int) {
        self.batch = batch
        self.route = route
        self.positions = positions
    }

    /// Whether there is nothing to write.
    package var isEmpty: Bool { leaving.isEmpty && ledger.isEmpty }
}

/// What a settle found.
package struct SettleReport: Equatable, Sendable {
    /// Whether the lease was still ours.
    package let owned: Bool
    /// Ledger rows that were new.
    package let ledgerRows: Int
    /// Rows that went back to the queue.
    package let returned: Int

    /// A settle's answer.
    package init(owned: Bool, ledgerRows: Int, returned: Int) {
        self.owned = owned
        self.ledgerRows = ledgerRows
        self.returned = returned
    }

    /// The lease is gone and these results are news: they stand on the ledger as `late` and changed nothing else.
    /// A lease that is gone without news is our own flush, repeated.
    package var isFenced: Bool { !owned && ledgerRows > 0 }
}

/// What an answer does to a device; applied after the settle, and only while the token that was sent is still stored.
package struct DeviceEffect: Equatable, Sendable {
    /// What happens to the device.
    package enum Change: Int16, Equatable, Sendable {
        /// A push was accepted: failures forgotten, success noted.
        case succeeded = 0
        /// The provider failed in a healthy lane.
        case failed = 1
        /// The token is dead and leaves the registry.
        case tokenInvalid = 2
    }

    /// The device.
    package let device: Int64
    /// The token that was sent.
    package let tokenSequence: Int32
    /// What happens.
    package let change: Change
    /// For a dead token: registered after this instant it lives on. The provider's timestamp, or the first byte's.
    package let asOf: Timestamp
    /// The notification whose answer this is, for the event.
    package let notification: Identifier

    /// An effect of one answer.
    package init(device: Int64, tokenSequence: Int32, change: Change, asOf: Timestamp, notification: Identifier) {
        self.device = device
        self.tokenSequence = tokenSequence
        self.change = change
        self.asOf = asOf
        self.notification = notification
    }
}

extension LedgerRow {
    /// The same row without what the provider said in words, for a database that cannot store it.
    package var withoutTexts: LedgerRow {
        LedgerRow(
            identifier: identifier, notification: notification, tenant: tenant, device: device,
            tokenSequence: tokenSequence, attempt: attempt,
            outcome: Outcome(outcome.kind, scope: outcome.scope, status: outcome.status), isFinal: isFinal,
            retryAfter: retryAfter, attemptedAt: attemptedAt, answeredAt: answeredAt)
    }
}
