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
    /// Its position in the lease, from 1. Not stored: it says what cannot leave while this row is not written.
    package let position: Int16
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
        attempt: Int16, position: Int16, outcome: Outcome, isFinal: Bool, retryAfter: Duration?,
        attemptedAt: Timestamp, answeredAt: Timestamp?
    ) {
        self.identifier = identifier
        self.notification = notification
        self.tenant = tenant
        self.device = device
        self.tokenSequence = tokenSequence
        self.attempt = attempt
        self.position = position
        self.outcome = outcome
        self.isFinal = isFinal
        self.retryAfter = retryAfter
        self.attemptedAt = attemptedAt
        self.answeredAt = answeredAt
    }
}

extension LedgerRow {
    /// The same row without what the provider said in words, for a database that cannot store it.
    package var withoutTexts: LedgerRow {
        LedgerRow(
            identifier: identifier, notification: notification, tenant: tenant, device: device,
            tokenSequence: tokenSequence, attempt: attempt, position: position,
            outcome: Outcome(outcome.kind, scope: outcome.scope, status: outcome.status), isFinal: isFinal,
            retryAfter: retryAfter, attemptedAt: attemptedAt, answeredAt: answeredAt)
    }
}
