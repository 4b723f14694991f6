/// A stretch of a claimed batch's text buffer.
package typealias TextRange = Range<Int32>

/// What the claim found about a row that it moved into the lease. The claim ends none: every end goes through the
/// settle.
package enum ClaimVerdict: Int16, Equatable, Sendable {
    /// Wanted and in time: send to its targets (none is an answer too).
    case send = 0
    /// A person or an erasure ended the whole notification.
    case closed = 1
    /// Its deadline has passed.
    case expired = 2
    /// Its outbox row is not to be seen: a defect, or a restore.
    case orphan = 3
    /// Its subject moved on.
    case superseded = 4
}

/// One device that a claimed row is to be sent to.
package struct ClaimedTarget: Equatable, Sendable {
    /// The device's number.
    package let device: Int64
    /// The push token, in the batch's text buffer.
    package let token: TextRange
    /// Which token of the device it is: device effects apply only while it is still the stored one.
    package let tokenSequence: Int32
    /// Attempts already spent on this target.
    package let spentAttempts: Int16
    /// Whether an accepted push should be noted on the device (it has failures, or none was noted for a day).
    package let notesSuccess: Bool

    /// A target as the claim answered it.
    package init(
        device: Int64, token: TextRange, tokenSequence: Int32, spentAttempts: Int16, notesSuccess: Bool
    ) {
        self.device = device
        self.token = token
        self.tokenSequence = tokenSequence
        self.spentAttempts = spentAttempts
        self.notesSuccess = notesSuccess
    }
}

/// One row of a claimed batch: the dispatch of a notification on the batch's route.
package struct ClaimedDispatch: Equatable, Sendable {
    /// The notification.
    package let notification: Identifier
    /// The share it was taken from.
    package let share: Share
    /// When it was due.
    package let dueAt: Timestamp
    /// Attempts of the dispatch, this one included: a number for the ledger.
    package let attempt: Int16
    /// Leases of it that lapsed with their worker.
    package let crashes: Int16
    /// Whether an earlier claim may have left ledger rows.
    package let prior: Bool
    /// Paging cursor: only devices above it are among the targets.
    package let afterDevice: Int64
    /// What the claim found.
    package let verdict: ClaimVerdict
    /// The notification's kind.
    package let kind: KindNumber
    /// When it was enqueued.
    package let createdAt: Timestamp
    /// Its deadline.
    package let expiresAt: Timestamp
    /// The payload, JSON.
    package let payload: TextRange
    /// The key under which the device shows at most one notification; empty for none.
    package let collapseKey: TextRange
    /// The conversation; empty for none.
    package let thread: TextRange
    /// The number for the app's icon; nil leaves it as it is.
    package let badge: Int32?
    /// Whether the producer asked for silence.
    package let silent: Bool
    /// The earliest instant at which a target that is left out now, because its own retry is still ahead, may be tried
    /// again; nil when none is left out for that. The row must not end before it.
    package let heldUntil: Timestamp?
    /// Why nobody is to be sent to although the row is wanted; nil when it has targets, or has reached them all before.
    package let nobody: SettlementReason?
    /// Its targets, as indices of the batch's `targets`.
    package let targets: Range<Int>

    /// A row as the claim answered it.
    package init(
        notification: Identifier, share: Share, dueAt: Timestamp, attempt: Int16, crashes: Int16, prior: Bool,
        afterDevice: Int64, verdict: ClaimVerdict, kind: KindNumber, createdAt: Timestamp, expiresAt: Timestamp,
        payload: TextRange, collapseKey: TextRange, thread: TextRange, badge: Int32?, silent: Bool,
        heldUntil: Timestamp?, nobody: SettlementReason? = nil, targets: Range<Int>
    ) {
        self.notification = notification
        self.share = share
        self.dueAt = dueAt
        self.attempt = attempt
        self.crashes = crashes
        self.prior = prior
        self.afterDevice = afterDevice
        self.verdict = verdict
        self.kind = kind
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.payload = payload
        self.collapseKey = collapseKey
        self.thread = thread
        self.badge = badge
        self.silent = silent
        self.heldUntil = heldUntil
        self.nobody = nobody
        self.targets = targets
    }
}

/// The rows that one claim moved into one lease. Position `p` of the lease (counted from 1) is `dispatches[p - 1]`.
package struct ClaimedBatch: Equatable, Sendable {
    /// The lease's name; the worker made it before it sent the claim.
    package let identifier: Identifier
    /// The route that all its rows wait for.
    package let route: RouteNumber
    /// The database's time in the claim.
    package let claimedAt: Timestamp
    /// The rows, in order of their position.
    package let dispatches: [ClaimedDispatch]
    /// The targets of all rows.
    package let targets: [ClaimedTarget]
    /// Tokens, payloads and keys, one after the other.
    package let text: [UInt8]

    /// A batch as the claim answered it.
    package init(
        identifier: Identifier, route: RouteNumber, claimedAt: Timestamp, dispatches: [ClaimedDispatch],
        targets: [ClaimedTarget], text: [UInt8]
    ) {
        self.identifier = identifier
        self.route = route
        self.claimedAt = claimedAt
        self.dispatches = dispatches
        self.targets = targets
        self.text = text
    }

    /// The bytes of a text of this batch.
    package subscript(range: TextRange) -> ArraySlice<UInt8> {
        text[Int(range.lowerBound)..<Int(range.upperBound)]
    }
}
