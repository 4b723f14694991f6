import Testing

@testable import OutboxCore

/// A decision machine with one lane, and short ways to feed it.
struct DispatchScene {
    static let start = Timestamp(microseconds: 1_700_000_000_000_000)
    let origin = ContinuousClock.now
    var state: DispatchState
    private var random = SplitMix(seed: 5)

    init(lanes: Int = 1, _ change: (inout DispatchSettings) -> Void = { _ in }) {
        var settings = DispatchSettings()
        change(&settings)
        let descriptions = (0..<lanes).map { LaneDescription(name: "apns/test/\($0)", pause: .seconds(2400)) }
        state = DispatchState(
            settings: settings, lanes: descriptions, clock: DatabaseClock(reading: Self.start, at: origin), seed: 1)
        for lane in 0..<lanes {
            state.updateLane(lane) {
                $0.setRoutes([RouteNumber(lane + 1)])
                $0.setCapacity(100)
            }
        }
    }

    /// The local instant so many seconds after the beginning.
    func at(_ seconds: Double) -> ContinuousClock.Instant { origin + .seconds(seconds) }

    func row(
        targets: Range<Int>, verdict: ClaimVerdict = .send, prior: Bool = false, cursor: PageCursor = .start,
        pageEnd: Int64? = nil, heldUntil: Timestamp? = nil, nobody: SettlementReason? = nil,
        lifetime: Duration = .seconds(86_400),
        kind: KindNumber = 1, attempt: Int16 = 1, crashes: Int16 = 0, seed: UInt64 = 1
    ) -> ClaimedDispatch {
        var random = SplitMix(seed: seed)
        return ClaimedDispatch(
            notification: .timeOrdered(at: Self.start, using: &random), share: Share(urgency: 0, tenant: 1),
            dueAt: Self.start, attempt: attempt, crashes: crashes, prior: prior, cursor: cursor,
            pageEnd: pageEnd, verdict: verdict,
            kind: kind, createdAt: Self.start, expiresAt: Self.start + lifetime, payload: 0..<0, collapseKey: 0..<0,
            thread: 0..<0, badge: nil, silent: false, heldUntil: heldUntil, nobody: nobody, targets: targets)
    }

    func batch(_ rows: [ClaimedDispatch], route: RouteNumber = 1, spentAttempts: Int16 = 0) -> ClaimedBatch {
        var random = SplitMix(seed: 99)
        let count = rows.last?.targets.upperBound ?? 0
        let targets = (0..<count).map {
            ClaimedTarget(
                device: Int64($0 + 1), token: 0..<0, tokenSequence: 1, spentAttempts: spentAttempts,
                notesSuccess: false)
        }
        return ClaimedBatch(
            identifier: .random(using: &random), route: route, claimedAt: Self.start, dispatches: rows,
            targets: targets, text: [])
    }

    /// `count` rows of one target each.
    func single(_ count: Int) -> [ClaimedDispatch] {
        (0..<count).map { row(targets: $0..<$0 + 1, seed: UInt64($0)) }
    }

    /// Claims these rows for a lane at an instant and answers the slot.
    @discardableResult
    mutating func claim(
        _ rows: [ClaimedDispatch], lane: Int = 0, at seconds: Double = 0, spentAttempts: Int16 = 0
    ) -> Int? {
        let claimed = batch(rows, route: RouteNumber(lane + 1), spentAttempts: spentAttempts)
        let request = ClaimRequest(
            batch: claimed.identifier, route: claimed.route, crashClass: .clean,
            credits: [ShareCredit(share: Share(urgency: 0, tenant: 1), rows: 100, mark: .start)],
            lease: state.settings.lease, targetsPerRow: state.settings.targetsPerClaim)
        return state.claimed(claimed, of: request, lane: lane, askedAt: at(seconds), now: at(seconds))
    }

    /// The targets of the next step, when it is a send.
    mutating func sent(lane: Int = 0, at seconds: Double = 0) -> [Int32] {
        guard case .send(_, let targets) = state.nextStep(ofLane: lane, now: at(seconds)) else { return [] }
        return Array(targets)
    }

    /// One target of slot 0 ends.
    mutating func end(_ target: Int, _ result: AttemptResult.Result, at seconds: Double = 0, slot: Int = 0) {
        state.ended(
            AttemptResult(
                tag: AttemptTag(slot: slot, target: target), result: result,
                attemptedAt: Self.start + .seconds(seconds), answeredAt: nil),
            policy: nil, now: at(seconds))
    }

    /// The one flush that is due.
    mutating func flush(at seconds: Double = 0, force: Bool = true) throws -> Settlement {
        let flushes = state.takeFlushes(now: at(seconds), force: force)
        return try #require(flushes.first).settlement
    }

    /// What all answers so far do to devices, once they are written.
    mutating func effects(at seconds: Double = 0) -> [DeviceEffect] {
        _ = state.takeFlushes(now: at(seconds), force: true)
        for slot in state.batches.indices where state.batches[slot]?.writing != nil {
            _ = state.settled(slot: slot, SettleReport(owned: true, ledgerRows: 1, returned: 0))
        }
        return state.takeEffects(limit: .max)
    }

    /// Slot 0's flush is written; whether it is news that its lease is lost.
    mutating func settle(owned: Bool, ledgerRows: Int, returned: Int) -> Bool {
        state.settled(slot: 0, SettleReport(owned: owned, ledgerRows: ledgerRows, returned: returned))
    }
}
