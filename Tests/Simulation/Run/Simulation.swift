import OutboxCore

/// One run: a virtual database, its workers and a scripted provider, by virtual time, in one thread.
///
/// Real are `DispatchState` with all that it holds, the policies, `ShareScan`, `WakePlan`, `RecoveryGate` and
/// `UnwrittenFlush`. Scripted are the statements' carrier, the transport, the provider, the clocks and the people.
final class Simulation {
    let plan: SimulationPlan
    let options: SimulationOptions
    var store: SimulatedStore
    var dice: FaultDice
    var trace: Trace
    let monitor: InvariantMonitor
    var workers: [SimulatedWorker] = []
    let provider = ScriptedProvider()
    var queue = EventQueue()

    /// Microseconds since the beginning.
    private(set) var clock: Int64 = 0
    /// By how much the database's clock has been set so far.
    private(set) var clockOffset: Int64 = 0
    /// Until when nobody reaches the database.
    private(set) var databaseIsAwayUntil: Int64 = 0
    private(set) var isLiveness = false
    /// Producer events still to come.
    var producersLeft = 0
    private var statements = 0
    private(set) var orders = 0

    /// Where all local clocks begin. Only differences of it count.
    static let origin = ContinuousClock.now
    private static let databaseOrigin: Int64 = 1_700_000_000_000_000

    init(_ plan: SimulationPlan, _ options: SimulationOptions) {
        self.plan = plan
        self.options = options
        store = SimulatedStore(
            now: Timestamp(microseconds: Self.databaseOrigin), seed: plan.seed ^ 0xDA7A, defect: options.storeDefect)
        store.waitForDevice = plan.waitForDevice
        dice = FaultDice(seed: plan.seed, rates: plan.rates, allowed: options.allowedFaults)
        trace = Trace(keepsLines: options.keepsTrace)
        monitor = InvariantMonitor(plan)
    }

    /// When the database's clock says `time`, while it is off by so many microseconds.
    func clock(of time: Timestamp, offset: Int64) -> Int64 { time.microseconds - Self.databaseOrigin - offset }

    /// The database's time.
    var databaseTime: Timestamp { Timestamp(microseconds: Self.databaseOrigin + clock + clockOffset) }

    func note(
        _ worker: Int, _ what: StaticString, _ first: Int = 0, _ second: Int = 0,
        _ detail: @autoclosure () -> String = ""
    ) {
        trace.note(at: clock, worker: worker, what, first, second, detail: detail())
    }

    // MARK: Running

    /// Runs to the end; answers what was found.
    func run() -> SimulationReport {
        for purpose in plan.hooks { store.setHook(purpose, true) }
        for device in plan.devices { register(device, isNewToken: true) }
        let count = options.workers.map { min($0, plan.workers) } ?? plan.workers
        workers = (0..<count).map { SimulatedWorker(self, index: $0) }
        for worker in workers { schedule(after: Int64(worker.index) * 300) { worker.start() } }
        scheduleProducers()
        scheduleAccidents()
        while monitor.violation == nil, clock < plan.safetyLength, advance() {}
        if monitor.violation == nil { beginLiveness() }
        let bound = clock + Self.livenessBound
        while monitor.violation == nil, !isOver {
            guard clock < bound, advance() else {
                monitor.found("stuck", "not at its end within \(Self.livenessBound / 1_000_000) s: \(openWork)")
                break
            }
        }
        if monitor.violation == nil { monitor.checkEnd(self) }
        return SimulationReport(
            seed: plan.seed, hash: trace.hash, violation: monitor.violation, events: trace.count, virtualTime: clock,
            faults: dice.counts, struck: dice.struck, requests: provider.log.count,
            duplicates: monitor.duplicates, notifications: store.notifications.count, steps: monitor.steps,
            passages: monitor.passages, lines: trace.lines)
    }

    /// How long after the last fault everything must have come to its end: the longest wait of a retry, a pause, and
    /// retries let out one a minute.
    private static let livenessBound: Int64 = 1_800_000_000

    private var isOver: Bool {
        producersLeft == 0 && store.queue.isEmpty && store.leases.isEmpty
            && workers.allSatisfy { $0.isAlive && $0.isIdle }
    }

    private var openWork: String {
        let waiting = store.queue.map { monitor.name($0.notification, store) + "/\($0.route)" }
        return "queue \(waiting), leases \(store.leases.count), idle \(workers.map { $0.isIdle })"
    }

    private func advance() -> Bool {
        guard let event = queue.pop() else { return false }
        clock = max(clock, event.at)
        if event.worker >= 0 {
            let worker = workers[event.worker]
            guard worker.life == event.life else { return true }
            if worker.pausedUntil > clock {
                queue.delay(event, until: worker.pausedUntil)
                return true
            }
        }
        event.run()
        return true
    }

    /// Faults end: workers come back, the database is there, people have nothing more to do.
    private func beginLiveness() {
        isLiveness = true
        dice.isOn = false
        databaseIsAwayUntil = 0
        store.lockedDevices = []
        store.lockedNotifications = []
        note(-1, "faults end")
        for worker in workers { worker.heal() }
    }

    // MARK: Scheduling

    /// Something happens to nobody, or to a worker in the life of which it is a part: its present one unless said.
    func schedule(
        after delay: Int64, worker: SimulatedWorker? = nil, life: Int? = nil, _ run: @escaping () -> Void
    ) {
        // A dead worker may still be in the middle of something: nothing comes of it.
        guard worker?.isAlive ?? true else { return }
        queue.push(
            at: clock + max(0, delay), worker: worker?.index ?? -1, life: life ?? worker?.life ?? 0, run)
    }

    /// A small number that differs from call to call and is the same in each run of a seed.
    func jitter(_ range: ClosedRange<Int>, salt: Int) -> Int64 {
        orders += 1
        return Int64(dice.draw(range, salt, orders, salt: 77))
    }

    private func scheduleProducers() {
        for (index, event) in plan.producers.enumerated() where options.allowedEvents?.contains(index) ?? true {
            producersLeft += 1
            schedule(after: event.at) { [unowned self] in
                producersLeft -= 1
                perform(event.action, index)
            }
        }
    }

    /// The database going away, its clock being set, rows being lost: one occasion every second.
    private func scheduleAccidents() {
        for second in 0..<Int(plan.safetyLength / 1_000_000) {
            schedule(after: Int64(second) * 1_000_000 + 500_000) { [unowned self] in
                if dice.strikes(.databaseAway, -1, second) {
                    let length = Int64(dice.draw(100...15_000, -1, second, salt: 1)) * 1000
                    databaseIsAwayUntil = max(databaseIsAwayUntil, clock + length)
                    note(-1, "database away", Int(length), 0, "for \(length / 1000) ms")
                    monitor.outages.append((clock, databaseIsAwayUntil))
                    for worker in workers { worker.loseDatabase(until: databaseIsAwayUntil) }
                }
                if dice.strikes(.clockStep, -1, second) {
                    // A second is what a step has to exceed to be noticed: one in three is about as long.
                    let isSmall = dice.draw(0...2, -1, second, salt: 3) == 0
                    let range = isSmall ? -1500...1500 : -20_000...60_000
                    setClock(by: Int64(dice.draw(range, -1, second, salt: 2)) * 1000)
                }
                for worker in workers where worker.isAlive {
                    for lane in worker.lanes.indices
                    where dice.strikes(.connectionLost, worker.index, second * 2 + lane) {
                        worker.loseConnection(lane: lane)
                    }
                }
            }
        }
    }

    private func setClock(by step: Int64) {
        clockOffset += step
        monitor.clockSteps.append((clock, step))
        note(-1, "clock set", Int(step), 0, "by \(step / 1000) ms")
    }

    /// One time in four that a worker begins to stand still for a lease or longer, the database's clock is set forward
    /// before its leases have lapsed: they lapse by that, and nobody renews them until recoveries begin again.
    func setClockForward(whileStill worker: Int, _ occasion: Int) {
        guard dice.draw(0...3, worker, occasion, salt: 33) == 0 else { return }
        let lease = Int(plan.settings.lease.wholeMicroseconds / 1000)
        schedule(after: Int64(dice.draw(lease / 10...lease / 2, worker, occasion, salt: 34)) * 1000) { [unowned self] in
            guard dice.happens(FaultKey(kind: .clockStep, stream: worker, occasion: occasion)) else { return }
            setClock(by: Int64(dice.draw(lease...60_000, worker, occasion, salt: 35)) * 1000)
        }
    }

    // MARK: Statements

    /// What becomes of a statement on its way.
    private enum Fate {
        case answered, replyLost, requestLost, late, transient
    }

    /// Sends a statement of a worker to the database and brings its answer back, as far as faults let it.
    func ask<Answer>(
        _ worker: SimulatedWorker, _ statement: Statement,
        _ run: @escaping (Simulation) -> Result<Answer, StoreError>,
        then: @escaping (Result<Answer, StoreError>) -> Void
    ) {
        statements += 1
        let occasion = worker.nextOccasion()
        let broken = StoreError(kind: .connection, operation: statement.name, message: "the connection ended")
        guard worker.passes(statement.sending) else { return }
        guard databaseIsAwayUntil <= clock else {
            schedule(after: jitter(1000...500_000, salt: 1), worker: worker) { then(.failure(broken)) }
            return
        }
        let fate = fate(of: statement, worker.index, occasion)
        var way = jitter(100...1500, salt: 2)
        if dice.strikes(.slowStatement, worker.index, occasion) { way += jitter(50_000...4_000_000, salt: 3) }
        // What hooks do is no trouble of the sessions that claim and settle.
        let isOurs = statement != .askHooks
        if isOurs, way > 10_000 || fate != .answered { worker.troubledAt = max(worker.troubledAt, clock + way) }
        switch fate {
        case .requestLost, .transient:
            let error =
                fate == .transient
                ? StoreError(kind: .transient, operation: statement.name, sqlState: "40P01", message: "deadlock")
                : broken
            if fate == .requestLost, isOurs { worker.reconnects() }
            schedule(after: way, worker: worker) { then(.failure(error)) }
        case .late:
            if isOurs { worker.reconnects() }
            schedule(after: way, worker: worker) { then(.failure(broken)) }
            schedule(after: way + jitter(1000...8_000_000, salt: 4)) { [unowned self] in
                _ = carryOut(statement, of: worker, run)
            }
        case .answered, .replyLost:
            let back = jitter(100...1500, salt: 5)
            let life = worker.life
            schedule(after: way) { [unowned self] in
                guard databaseIsAwayUntil <= clock else {
                    return schedule(after: 0, worker: worker, life: life) { then(.failure(broken)) }
                }
                let answer = carryOut(statement, of: worker, run)
                if fate == .replyLost, isOurs, worker.life == life { worker.reconnects() }
                schedule(after: back, worker: worker, life: life) {
                    guard worker.passes(statement.answered) else { return }
                    then(fate == .replyLost ? .failure(broken) : answer)
                }
            }
        }
    }

    private func fate(of statement: Statement, _ worker: Int, _ occasion: Int) -> Fate {
        if dice.strikes(statement.lostReply, worker, occasion) { return .replyLost }
        if dice.strikes(.requestLost, worker, occasion) { return .requestLost }
        if dice.strikes(.lateCommit, worker, occasion) { return .late }
        return dice.strikes(.transient, worker, occasion) ? .transient : .answered
    }

    private func carryOut<Answer>(
        _ statement: Statement, of worker: SimulatedWorker, _ run: (Simulation) -> Result<Answer, StoreError>
    ) -> Result<Answer, StoreError> {
        store.now = databaseTime
        let answer = run(self)
        monitor.didChange(self, by: statement, of: worker)
        note(worker.index, "executed", statement.rawValue, store.queue.count, statement.name)
        return answer
    }
}
