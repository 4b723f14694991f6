/// The decision machine of a worker: it takes what happened and says what to do, and does no I/O itself.
///
/// Leases live in slots; a target in flight is named by its slot and index (`AttemptTag`). The runtime feeds it claims,
/// answers and settle reports, and asks it what to claim, send, check, write and renew next.
package struct DispatchState: Sendable {
    /// The bounds and the policy it decides by.
    package let settings: DispatchSettings
    /// The lanes, in the order of the configuration.
    package internal(set) var lanes: [LaneState]
    /// Whether the worker stops: nothing is claimed any more.
    package private(set) var isDraining = false
    /// The database's clock as last heard.
    package private(set) var clock: DatabaseClock

    var batches: [LeasedBatch?] = []
    var effects: [DeviceEffect] = []
    var alarms: [LaneAlarm] = []
    var random: SplitMix
    var identifiers = LedgerIdentifiers()
    var marks = ShareMarks()
    private var freeSlots: [Int] = []
    /// Slots per lane with unsent targets, oldest claim first.
    var sending: [[Int]]
    private var routeTurn = 0
    /// The kinds that have had hooks, in the order in which they came; nearly always none.
    var hookedKinds: [HookedKind] = []
    /// Which of them a kind's number stands for; only those that have hooks now.
    var hookedKindNumbers: [KindNumber: Int] = [:]
    /// Slots per lane with unsent targets whose kinds have hooks, oldest claim first.
    var hookedSlots: [[Int]]
    var hookCalls = 0
    var hookTurn = 0
    /// Whether rows may wait for a call of their kind's hooks; false costs the hot path nothing but the question.
    package internal(set) var hooksMayBeAsked = false

    /// A worker that holds nothing. `seed` makes its draws (jitter, identifiers) repeatable.
    package init(settings: DispatchSettings, lanes: [LaneDescription], clock: DatabaseClock, seed: UInt64) {
        self.settings = settings
        self.lanes = lanes.map { LaneState($0, settings: settings) }
        self.clock = clock
        random = SplitMix(seed: seed)
        sending = lanes.map { _ in [] }
        hookedSlots = sending
    }

    /// Leases that the worker holds.
    package var heldBatches: Int { batches.count - freeSlots.count }

    /// Whether nothing is held and nothing waits to be written.
    package var isIdle: Bool { heldBatches == 0 && effects.isEmpty }

    /// Requests handed to transports and not answered.
    package var inFlight: Int { lanes.reduce(0) { $0 + $1.inFlight } }

    /// The lease in a slot.
    package func batch(_ slot: Int) -> LeasedBatch? {
        slot < batches.count ? batches[slot] : nil
    }

    /// What a lease was claimed with, without a share in what changes: a copy of a whole lease, held while the lease is
    /// changed, would make each change copy its arrays.
    mutating func claimed(in slot: Int) -> (batch: ClaimedBatch, lane: Int) {
        guard let claimed = batches[slot]?.origin() else {
            preconditionFailure("a lease outlives the requests of its targets")
        }
        return claimed
    }

    /// The database said what time it is, in answer to what it was asked at `askedAt`.
    package mutating func heard(_ time: Timestamp, askedAt: ContinuousClock.Instant, at now: ContinuousClock.Instant) {
        clock.heard(time, askedAt: askedAt, answeredAt: now)
    }

    /// Changes a lane by what its transport said.
    package mutating func updateLane(_ lane: Int, _ change: (inout LaneState) -> Void) {
        change(&lanes[lane])
    }

    // MARK: Claiming

    /// Routes of lanes that are open: what to look for work on. Empty while draining or when too much waits to be
    /// written.
    package func openRoutes(at now: ContinuousClock.Instant) -> [RouteNumber] {
        guard !isDraining, unsettledRows < settings.unsettledLimit else { return [] }
        return lanes.flatMap { $0.openRoutes(at: now) }
    }

    /// The next claim among the shares that have due work, routes in turn; nil when there is none or no room.
    package mutating func planClaim(
        _ work: WaitingWork, now: ContinuousClock.Instant
    ) -> (request: ClaimRequest, lane: Int)? {
        guard !isDraining, unsettledRows < settings.unsettledLimit else { return nil }
        let due = work.shares.filter { $0.dueAt <= work.now }
        let groups = claimableGroups(due, now: now)
        guard !groups.isEmpty else { return nil }
        routeTurn += 1
        let (route, crashClass, lane) = groups[routeTurn % groups.count]
        let rows = min(demand(ofLane: lane, at: now), settings.batch, crashClass.batchLimit, probes(route, lane, now))
        let shares = due.filter { $0.route == route && $0.crashClass == crashClass }.map(\.share)
        let parts = FairShare.divide(
            rows, among: rotated(shares), bulkShare: settings.bulkShare, draw: random.fraction())
        let credits = parts.map {
            ShareCredit(
                share: $0.share, rows: $0.rows,
                mark: marks.mark(route: route, crashClass: crashClass, share: $0.share, at: now))
        }
        let request = ClaimRequest(
            batch: .random(using: &random), route: route, crashClass: crashClass, credits: credits,
            lease: settings.lease, targetsPerRow: settings.targetsPerClaim)
        return (request, lane)
    }

    /// Shares beginning at a drawn one, so that a remainder does not always go to the same tenant. Counted turns would
    /// fall into step with those of the routes.
    private mutating func rotated(_ shares: [Share]) -> [Share] {
        guard shares.count > 1 else { return shares }
        let turn = Int(random.next() % UInt64(shares.count))
        return Array(shares[turn...] + shares[..<turn])
    }

    private func claimableGroups(
        _ due: [WaitingShare], now: ContinuousClock.Instant
    ) -> [(route: RouteNumber, crashClass: CrashClass, lane: Int)] {
        var groups: [(route: RouteNumber, crashClass: CrashClass, lane: Int)] = []
        for share in due {
            guard let lane = lanes.firstIndex(where: { $0.routes.contains(share.route) }),
                lanes[lane].isOpen(share.route, at: now), isWorthAClaim(lane, at: now),
                share.crashClass != .suspect || !holdsSuspect,
                !groups.contains(where: { $0.route == share.route && $0.crashClass == share.crashClass })
            else { continue }
            groups.append((share.route, share.crashClass, lane))
        }
        return groups
    }

    /// Whether a suspect is held. No other one is claimed beside it: if it kills this worker, a second one would die
    /// with it, each time, and be set aside like it.
    private var holdsSuspect: Bool {
        batches.contains { batch in
            batch.map { $0.claimed.dispatches.contains { $0.crashes >= CrashClass.suspect.rawValue } } ?? false
        }
    }

    /// Rows that a lane can use now: free slots of its transport and 100 ms of its measured rate, less what it holds.
    package func demand(ofLane lane: Int, at now: ContinuousClock.Instant) -> Int {
        let room = lanes[lane].room(at: now)
        guard room > 0 || lanes[lane].gate.pause == nil else { return 0 }
        let waiting = sending[lane].reduce(0) { $0 + (batches[$1]?.unsent.count ?? 0) }
        // What waits for a hook has a bound of its own: it must not keep other kinds from being claimed.
        let cleared = hookedSlots[lane].reduce(0) { $0 + (batches[$1]?.clearTargets ?? 0) }
        return max(0, room + lanes[lane].lookAhead - waiting - cleared)
    }

    /// How many rows a closed gate lets through: a claim for a probe takes one.
    private func probes(_ route: RouteNumber, _ lane: Int, _ now: ContinuousClock.Instant) -> Int {
        let state = lanes[lane]
        return min(state.gate.allowance(at: now), state.topic(route)?.gate.allowance(at: now) ?? 0)
    }

    /// Whether a lane has room for a claim of a sensible size: at full speed rows are taken by half a window, not one
    /// by one as slots come free.
    private func isWorthAClaim(_ lane: Int, at now: ContinuousClock.Instant) -> Bool {
        demand(ofLane: lane, at: now) >= max(1, min(lanes[lane].lookAhead, settings.batch) / 2)
    }

    /// Whether any open lane has room for a claim.
    package func wantsWork(at now: ContinuousClock.Instant) -> Bool {
        lanes.indices.contains { wantsWork(lane: $0, at: now) }
    }

    /// Whether this lane is open and has room for a claim, and there are rows it could get.
    package func wantsWork(lane: Int, at now: ContinuousClock.Instant) -> Bool {
        !isDraining && unsettledRows < settings.unsettledLimit && !lanes[lane].routes.isEmpty
            && !lanes[lane].openRoutes(at: now).isEmpty && isWorthAClaim(lane, at: now)
    }

    /// A claim that was sent at `askedAt` is answered. The slot of its lease; nil when it found no row.
    @discardableResult
    package mutating func claimed(
        _ batch: ClaimedBatch?, of request: ClaimRequest, lane: Int, askedAt: ContinuousClock.Instant,
        now: ContinuousClock.Instant
    ) -> Int? {
        var last: [Share: LowWaterMark] = [:]
        for dispatch in batch?.dispatches ?? [] {
            // The answer is in no order.
            let mark = LowWaterMark(dueAt: dispatch.dueAt, notification: dispatch.notification)
            last[dispatch.share] = max(last[dispatch.share] ?? mark, mark)
        }
        marks.claimed(request, last: last, cost: askedAt.duration(to: now), at: now)
        guard let batch else { return nil }
        heard(batch.claimedAt, askedAt: askedAt, at: now)
        var leased = LeasedBatch(batch, lane: lane, askedAt: askedAt, settings: settings)
        leased.leaveWithoutTargets(at: now)
        let slot = freeSlots.popLast() ?? batches.count
        if slot == batches.count { batches.append(leased) } else { batches[slot] = leased }
        if !hookedKindNumbers.isEmpty { setAside(slot: slot, at: now) }
        if batches[slot]?.unsent.isEmpty == false { sending[lane].append(slot) }
        return slot
    }

    /// A draw from 0..<1, for jitter.
    package mutating func draw() -> Double {
        random.fraction()
    }

    /// Own recovery put rows back behind the marks.
    package mutating func recovered() {
        marks.reset()
    }

    // MARK: Stopping

    /// Nothing is claimed any more, and what was not sent goes back; answers how many targets that are.
    package mutating func drain(at now: ContinuousClock.Instant) -> Int {
        isDraining = true
        return lanes.indices.reduce(0) { $0 + releaseUnsent(ofLane: $1, after: .zero, at: now) }
    }

    /// Frees the slot of a lease that is finished.
    mutating func finishIfDone(_ slot: Int) {
        guard batches[slot]?.isFinished == true else { return }
        batches[slot] = nil
        freeSlots.append(slot)
        for lane in sending.indices { sending[lane].removeAll { $0 == slot } }
        for lane in hookedSlots.indices where !hookedSlots[lane].isEmpty { hookedSlots[lane].removeAll { $0 == slot } }
    }

    /// Results that wait for their settle.
    package var unsettledRows: Int {
        batches.reduce(0) { $0 + ($1?.unsettledRows ?? 0) }
    }
}
