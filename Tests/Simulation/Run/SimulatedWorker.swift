import OutboxCore

/// A worker in a run: the real decision machine, and what the product's dispatcher does around it, by virtual time.
///
/// Its three tasks (claim, settle, keep up) are written as the dispatcher's are, with a continuation for each await.
final class SimulatedWorker {
    unowned let simulation: Simulation
    let index: Int
    /// Raised with each death, so that what was meant for an earlier life is dropped.
    private(set) var life = 0
    private(set) var isAlive = false
    var pausedUntil: Int64 = 0
    private(set) var owner = Identifier(high: 0, low: 0)
    private var occasion = 0

    var state: DispatchState
    var scan = ShareScan()
    var wakePlan: WakePlan
    var recovery: RecoveryGate
    var lanes: [SimulatedLane] = []
    var known: WaitingWork?
    var claimFailures = 0
    var unwritten: [UnwrittenFlush] = []
    var laterEffects: [DeviceEffect] = []
    var lanesToRetry: [Int] = []
    var isClaiming = true
    var isFinished = false
    var settleIsIdle = false
    var abortsAt: ContinuousClock.Instant?
    var connectedAt: Int64 = 0
    var reportedAt: ContinuousClock.Instant?
    var nextSweep: ContinuousClock.Instant
    /// When it last asked what it was told the database's time with.
    var heardAt: Int64 = 0
    /// When something last kept it from looking after its leases.
    var troubledAt: Int64 = 0
    /// When each lease was last checked: asked, answered, and how long that holds.
    var checks: [Int: ContinuousClock.Instant] = [:]
    /// The same of the rows of a lease that waited for hooks.
    var hookChecks: [Identifier: ContinuousClock.Instant] = [:]
    /// The hooks that it loaded last.
    var knownHooks: [KindHook] = []
    private(set) lazy var claimSignal = WorkerSignal(self)
    private(set) lazy var settleSignal = WorkerSignal(self)
    private(set) lazy var upkeepSignal = WorkerSignal(self)

    init(_ simulation: Simulation, index: Int) {
        self.simulation = simulation
        self.index = index
        state = DispatchState(
            settings: simulation.plan.settings, lanes: [],
            clock: DatabaseClock(reading: simulation.databaseTime, at: Simulation.origin), seed: 0)
        wakePlan = WakePlan(poll: simulation.plan.poll)
        recovery = RecoveryGate(
            lease: simulation.plan.settings.lease, now: simulation.databaseTime, at: Simulation.origin)
        nextSweep = Simulation.origin
    }

    var defect: DriverDefect? { simulation.options.driverDefect }

    /// Whether nothing is held or waits to be written.
    var isIdle: Bool { state.isIdle && unwritten.isEmpty && laterEffects.isEmpty }

    // MARK: Clock

    /// The worker's own monotonic clock: it goes wrong by a few millionths.
    var now: ContinuousClock.Instant { instant(at: simulation.clock) }

    private func instant(at clock: Int64) -> ContinuousClock.Instant {
        Simulation.origin + .microseconds(clock + clock * Int64(simulation.plan.drifts[index]) / 1_000_000)
    }

    /// Runs at an instant of the worker's own clock, or now when it has passed.
    func at(_ deadline: ContinuousClock.Instant, _ run: @escaping () -> Void) {
        // Beyond the deadline, also when less than a microsecond is left: who waits for it would never see it pass.
        let left = now.duration(to: deadline)
        let wait = left.wholeMicroseconds
        simulation.schedule(after: left <= .zero ? 0 : wait + wait / 2000 + 1, worker: self, run)
    }

    func soon(_ run: @escaping () -> Void) {
        simulation.schedule(after: 0, worker: self, run)
    }

    /// The number of the next occasion for a fault of this worker; goes on over its lives.
    func nextOccasion() -> Int {
        occasion += 1
        return occasion
    }

    // MARK: Life

    /// Begins a life, with an owner of its own.
    func start() {
        life += 1
        isAlive = true
        let plan = simulation.plan
        var random = simulation.dice.generator(index, life, 0x0E)
        owner = .random(using: &random)
        let routes: [RouteNumber] = plan.isDivided && index < 2 ? [RouteNumber(index) + 1] : [1, 2]
        lanes = routes.map { SimulatedLane(route: $0, capacity: plan.capacity) }
        let names = routes.map { LaneDescription(name: "lane-\($0)", pause: plan.pause) }
        state = DispatchState(
            settings: plan.settings, lanes: names,
            clock: DatabaseClock(reading: simulation.databaseTime, at: now), seed: random.next())
        heardAt = simulation.clock
        (scan, wakePlan) = (ShareScan(), WakePlan(poll: plan.poll))
        recovery = RecoveryGate(lease: plan.settings.lease, now: simulation.databaseTime, at: now)
        (unwritten, laterEffects, known, claimFailures) = ([], [], nil, 0)
        (isClaiming, isFinished, settleIsIdle, abortsAt, reportedAt) = (true, false, false, nil, nil)
        claimSignal = WorkerSignal(self)
        settleSignal = WorkerSignal(self)
        upkeepSignal = WorkerSignal(self)
        lanesToRetry = Array(lanes.indices)
        nextSweep = now
        (checks, hookChecks, knownHooks) = ([:], [:], [])
        connectedAt = max(simulation.clock, simulation.databaseIsAwayUntil)
        simulation.note(index, "starts", life)
        refreshRegistry { [self] in
            claimTurn()
            settleTurn()
            upkeepTurn(0)
        }
    }

    /// Ends this life: nothing that was under way comes back.
    func die(_ why: StaticString) {
        guard isAlive else { return }
        simulation.note(index, why, life)
        life += 1
        isAlive = false
        simulation.store.awake.removeAll { $0.owner == owner }
        let rest = simulation.isLiveness ? 1000 : simulation.jitter(1000...10_000_000, salt: 20)
        simulation.schedule(after: rest) { [unowned self] in if !isAlive { start() } }
    }

    /// Whether the worker goes on from this step: it may die at it, or stand still.
    func passes(_ step: WorkerStep) -> Bool {
        guard isAlive else { return false }
        let occasion = nextOccasion()
        if simulation.dice.strikes(.crash, index, occasion, weight: step.weight) {
            simulation.monitor.steps[step.rawValue] += 1
            die("dies")
            return false
        }
        if simulation.dice.strikes(.pause, index, occasion, weight: step.weight) {
            let isLong = simulation.dice.draw(0...1, index, occasion, salt: 31) == 0
            let lease = Int(simulation.plan.settings.lease.wholeMicroseconds)
            let length = simulation.dice.draw(
                isLong ? lease...lease * 2 : 1000...lease, index, occasion, salt: 32)
            simulation.note(index, "stands still", length, 0, "for \(length / 1000) ms")
            pausedUntil = simulation.clock + Int64(length)
            troubledAt = pausedUntil
            if isLong { simulation.setClockForward(whileStill: index, occasion) }
        }
        if abortsAt == nil, simulation.dice.strikes(.stop, index, occasion) { soon { [self] in stop() } }
        return true
    }

    /// Faults end: a worker that stands still goes on, one that is away from the database comes back.
    func heal() {
        if pausedUntil > simulation.clock {
            // What waits for it is in the queue at the time at which the pause was to end.
            pausedUntil = 0
        }
        connectedAt = min(connectedAt, simulation.clock)
        if !isAlive { start() }
    }

    /// The database cannot be reached: the sessions end, and are made again some time after it is back.
    func loseDatabase(until: Int64) {
        connectedAt = until + simulation.jitter(10_000...3_000_000, salt: 21)
        troubledAt = max(troubledAt, until + 10_000_000)
        simulation.store.awake.removeAll { $0.owner == owner }
    }

    /// A session broke and is made again.
    func reconnects() {
        connectedAt = max(connectedAt, simulation.clock + simulation.jitter(5000...500_000, salt: 22))
        simulation.store.awake.removeAll { $0.owner == owner }
    }

    /// Since when the sessions stand; nil while one is down.
    var connectedSince: ContinuousClock.Instant? {
        connectedAt > simulation.clock ? nil : instant(at: connectedAt)
    }

    /// The database said what time it is, in answer to what it was asked at `askedAt`.
    func heard(_ time: Timestamp, askedAt: ContinuousClock.Instant) {
        state.heard(time, askedAt: askedAt, at: now)
        heardAt = max(heardAt, simulation.clock - askedAt.duration(to: now).wholeMicroseconds)
    }

    /// A notification of the database came.
    func wake() {
        claimSignal.ring()
    }

    /// Told to stop: nothing is claimed any more, what is under way is finished. See `Dispatcher.stop`.
    func stop() {
        guard abortsAt == nil else { return }
        simulation.note(index, "is told to stop")
        abortsAt = now + .seconds(5)
        _ = state.drain(at: now)
        state.returnEffects(laterEffects)
        laterEffects = []
        guard passes(.draining) else { return }
        claimSignal.ring()
        settleSignal.ring()
        upkeepSignal.ring()
    }

    // MARK: Asking

    /// Asks the store for something and goes on with its answer.
    func ask<Answer>(
        _ statement: Statement, _ run: @escaping (inout SimulatedStore) -> Answer,
        then: @escaping (Result<Answer, StoreError>) -> Void
    ) {
        simulation.ask(self, statement, { .success(run(&$0.store)) }, then: then)
    }
}
