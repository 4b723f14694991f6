/// What the claim found about a row that it moved into the lease. The claim ends none: every end goes through the
/// settle.
package enum ClaimVerdict: Int16, Equatable, Sendable {
    /// Wanted and in time: send to its targets (none is an answer too).
    case send = 0
    /// The whole notification has its end already.
    case closed = 1
    /// Its deadline has passed.
    case expired = 2
    /// Its outbox row is not to be seen: a defect, or a restore.
    case orphan = 3
    /// Its subject moved on.
    case superseded = 4
    /// Its principal has seen the subject, and its kind ends by that.
    case seen = 5
    /// Its thread was erased.
    case erased = 6
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
    /// Behind which device its page of devices began.
    package let cursor: PageCursor
    /// The last device of the page, when there may be more behind it, or a second look has to come to its end; nil when
    /// there is nothing more to look at.
    package let pageEnd: Int64?
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
    /// The tenant's instance id, as it was at the enqueue; empty where the kind does not carry it.
    package let instance: TextRange
    /// The number for the app's icon; nil leaves it as it is.
    package let badge: Int32?
    /// Whether the producer asked for silence.
    package let silent: Bool
    /// The earliest instant at which a target that is left out now, because its own retry is still ahead, may be tried
    /// again; nil when none is left out for that. The row must not end before it. At the end of a second look it may be
    /// now: somebody's wait was over behind the cursor.
    package let heldUntil: Timestamp?
    /// Why nobody is to be sent to although the row is wanted; nil when it has targets, or has reached them all before.
    package let nobody: SettlementReason?
    /// Its targets, as indices of the batch's `targets`.
    package let targets: Range<Int>

    /// A row as the claim answered it.
    package init(
        notification: Identifier, share: Share, dueAt: Timestamp, attempt: Int16, crashes: Int16, prior: Bool,
        cursor: PageCursor, pageEnd: Int64? = nil, verdict: ClaimVerdict, kind: KindNumber, createdAt: Timestamp,
        expiresAt: Timestamp, payload: TextRange, collapseKey: TextRange, thread: TextRange,
        instance: TextRange = 0..<0, badge: Int32?,
        silent: Bool, heldUntil: Timestamp?, nobody: SettlementReason? = nil, targets: Range<Int>
    ) {
        self.notification = notification
        self.share = share
        self.dueAt = dueAt
        self.attempt = attempt
        self.crashes = crashes
        self.prior = prior
        self.cursor = cursor
        self.pageEnd = pageEnd
        self.verdict = verdict
        self.kind = kind
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.payload = payload
        self.collapseKey = collapseKey
        self.thread = thread
        self.instance = instance
        self.badge = badge
        self.silent = silent
        self.heldUntil = heldUntil
        self.nobody = nobody
        self.targets = targets
    }
}
