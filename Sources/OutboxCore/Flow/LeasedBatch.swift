/// One lease that the worker holds: which targets are still to be sent, what came of the others, and what the next
/// flush will write.
package struct LeasedBatch: Sendable {
    /// The rows as the claim answered them.
    package let claimed: ClaimedBatch
    /// The lane that sends them.
    package let lane: Int
    /// The local end of the lease, counted from before the claim was sent, so that clock skew can only shorten it.
    package private(set) var leaseEnds: ContinuousClock.Instant
    /// When the lease is to be renewed: a third of its length after it was last extended.
    package private(set) var renewAt: ContinuousClock.Instant
    /// Until when the last check of the unsent rows counts, from before its statement was sent.
    package private(set) var checkHoldsUntil: ContinuousClock.Instant
    /// Until when the targets that were taken last may be sent, by what they were checked for.
    package internal(set) var takenHoldUntil: ContinuousClock.Instant
    /// Whether a re-check is under way.
    package private(set) var isChecking = false
    /// Targets that were not taken for sending, oldest claim first.
    package private(set) var unsent: ArraySlice<Int32>
    /// Unsent targets whose kinds have hooks, apart from the others; none in nearly every lease.
    var hooked: [HookedRows] = []
    /// The flush being written; nil while there is none.
    package private(set) var writing: Settlement?
    /// When the oldest result of the next flush was known; nil while it is empty.
    package private(set) var pendingSince: ContinuousClock.Instant?
    /// Whether somebody else has the lease's rows now.
    package private(set) var isLost = false
    /// Whether any of its targets was tried before.
    package let hasRetries: Bool
    /// Positions that no flush has let go yet.
    package private(set) var openPositions: Int

    /// Whether a flush has met the fence: a renewal may have known before, but this is when results came late.
    private var wasFenced = false
    private var pending: Settlement
    /// What the results of `pending` and of `writing` do to devices once they are written.
    private var pendingEffects: [DeviceEffect] = []
    private var writingEffects: [DeviceEffect] = []
    private var progress: [PositionProgress]
    private let leaseLength: Duration
    private let recheckAfter: Duration

    /// A lease that was claimed by a statement sent at `askedAt`.
    init(_ claimed: ClaimedBatch, lane: Int, askedAt: ContinuousClock.Instant, settings: DispatchSettings) {
        self.claimed = claimed
        self.lane = lane
        leaseLength = settings.lease
        leaseEnds = askedAt + settings.lease
        renewAt = askedAt + settings.lease / 3
        recheckAfter = settings.recheckAfter
        checkHoldsUntil = askedAt + settings.recheckAfter
        takenHoldUntil = checkHoldsUntil
        pending = Settlement(
            batch: claimed.identifier, route: claimed.route, positions: claimed.dispatches.count)
        openPositions = claimed.dispatches.count
        hasRetries = claimed.targets.contains { $0.isRetry }
        progress = claimed.dispatches.map { PositionProgress(targets: $0.targets.count) }
        unsent = Array(0..<Int32(claimed.targets.count))[...]
    }

    /// Whether every position left, every result is written and nothing is under way.
    package var isFinished: Bool { openPositions == 0 && pending.isEmpty && writing == nil && !isChecking }

    /// Results that no finished flush has written: ledger rows, or rows that only go back.
    package var unsettledRows: Int { pending.size + (writing?.size ?? 0) }

    /// What was claimed, and for which lane. Changes nothing; a call that may is made in place, where reading from an
    /// array copies the whole element.
    mutating func origin() -> (batch: ClaimedBatch, lane: Int) {
        (claimed, lane)
    }

    /// Whether nobody can have recovered the lease before `now`.
    func isSurelyOurs(at now: ContinuousClock.Instant) -> Bool { !isLost && now < leaseEnds }

    /// The row that a target belongs to.
    package func dispatch(ofTarget target: Int) -> ClaimedDispatch {
        claimed.dispatch(ofTarget: target)
    }

    /// Whether a target was tried before.
    package func isRetry(_ target: Int) -> Bool { claimed.targets[target].isRetry }

    // MARK: Sending

    /// Takes at most `limit` targets for sending.
    mutating func take(_ limit: Int) -> ArraySlice<Int32> {
        let taken = unsent.prefix(limit)
        unsent = unsent.dropFirst(limit)
        takenHoldUntil = checkHoldsUntil
        return taken
    }

    /// Only these of the unsent targets are left; the others have their disposition.
    mutating func keepUnsent(_ standing: [Int32]) {
        unsent = standing[...]
    }

    /// Lets rows without targets (and those that ended before the send) leave at once.
    mutating func leaveWithoutTargets(at now: ContinuousClock.Instant) {
        for position in claimed.dispatches.indices where claimed.dispatches[position].targets.isEmpty {
            leave(position, at: now)
        }
    }

    /// A re-check of the unsent targets was sent.
    mutating func checkBegan() {
        isChecking = true
    }

    /// What a check has let through may be sent for so long after its answer, however long the answer took: a database
    /// slower than the age of a check would else be asked again and again, and nothing ever sent.
    static let checkGrace = Duration.milliseconds(50)

    /// The re-check that was sent at `askedAt` is answered, or failed (`askedAt` nil: the old check counts on).
    mutating func checkEnded(askedAt: ContinuousClock.Instant?, at now: ContinuousClock.Instant) {
        isChecking = false
        if let askedAt { checkHoldsUntil = max(askedAt + recheckAfter, now + Self.checkGrace) }
    }

    // MARK: Results

    /// One target has its disposition; `row` goes to the ledger, and then `effect` to the device.
    mutating func account(
        target: Int, _ disposition: Disposition, row: LedgerRow?, effect: DeviceEffect? = nil,
        at now: ContinuousClock.Instant
    ) {
        let position = claimed.index(ofTarget: target)
        if let row { pending.ledger.append(row) }
        if let effect { pendingEffects.append(effect) }
        progress[position].account(disposition)
        afterAccounting(position, at: now)
    }

    /// One target fell out because its notification is over or its deadline has passed.
    mutating func accountEnd(
        target: Int, status: SettlementStatus, reason: SettlementReason, row: LedgerRow,
        at now: ContinuousClock.Instant
    ) {
        let position = claimed.index(ofTarget: target)
        pending.ledger.append(row)
        progress[position].accountEnd(status, reason)
        afterAccounting(position, at: now)
    }

    private mutating func afterAccounting(_ position: Int, at now: ContinuousClock.Instant) {
        if progress[position].remaining == 0 { leave(position, at: now) }
        // A target that goes back is written with its row, when that leaves: until then there may be nothing to flush.
        if !pending.isEmpty { pendingSince = pendingSince ?? now }
    }

    private mutating func leave(_ index: Int, at now: ContinuousClock.Instant) {
        pendingSince = pendingSince ?? now
        openPositions -= 1
        let dispatch = claimed.dispatches[index]
        let position = Int16(index + 1)
        let exit = progress[index].exit(position: position, of: dispatch, claimedAt: claimed.claimedAt)
        pending.leaving.append(position)
        switch exit {
        case .done: break
        case .returned(let row): pending.returns.append(row)
        case .ended(let end): pending.ends.append(end)
        }
    }

    // MARK: Settling

    /// Begins the next flush; nil while one is being written or there is nothing to write.
    mutating func beginFlush() -> Settlement? {
        guard writing == nil, !pending.isEmpty else { return nil }
        var flush = pending
        flush.leaving.sort()
        writing = flush
        pending = Settlement(batch: claimed.identifier, route: claimed.route, positions: claimed.dispatches.count)
        pendingSince = nil
        swap(&writingEffects, &pendingEffects)
        return flush
    }

    /// The flush is in the database. Answers whether it is the first of its lease to come late, and what
    /// it does to devices: nothing, when the lease is lost and its rows are late.
    mutating func flushEnded(_ report: SettleReport) -> (isNews: Bool, effects: [DeviceEffect]) {
        writing = nil
        let isNews = report.isFenced && !wasFenced
        if report.isFenced { (isLost, wasFenced) = (true, true) }
        let effects = isLost ? [] : writingEffects
        writingEffects.removeAll(keepingCapacity: true)
        return (isNews, effects)
    }

    /// How many results wait for their flush.
    var pendingRows: Int { pending.ledger.count }

    // MARK: Lease

    /// The lease was extended by a statement sent at `askedAt`.
    mutating func renewed(askedAt: ContinuousClock.Instant) {
        leaseEnds = askedAt + leaseLength
        renewAt = askedAt + leaseLength / 3
    }

    /// A renewal is under way, or failed: not again before a while.
    mutating func renewalAsked(at now: ContinuousClock.Instant) {
        renewAt = now + leaseLength / 3
    }

    /// The database says the lease is not ours any more: nothing of it is sent from now on.
    mutating func lost() {
        isLost = true
    }
}
