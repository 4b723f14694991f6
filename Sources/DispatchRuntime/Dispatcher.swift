package import EventLoop
import HTTP2
package import OutboxCore

#if CRASH_POINTS
    import CrashPoints
#endif

/// The worker: claims, sends and settles on one event loop, by the decisions of `DispatchState`.
///
/// Tasks run side by side and meet only in the state: one claims, one writes flushes, one keeps leases alive and
/// recovers, one removes what was kept long enough; the transports answer by call. An `await` among them is a call on
/// the loop, not a thread crossing.
package actor Dispatcher {
    let loop: EventLoop
    let store: any OutboxStore
    let observer: any DispatchObserver
    let settings: DispatcherSettings
    var state: DispatchState
    let configurations: [LaneConfiguration]
    var lanes: [ProviderLane] = []
    var routes: [RouteNumber: Route] = [:]
    var kinds: [KindNumber: Kind] = [:]
    /// When the queue may be searched for shares with work, and which are known.
    var scan = ShareScan()
    /// Rung when a claim may find something: a notification, free slots, an open lane.
    let claimSignal: LoopSignal
    /// Rung when results wait to be written.
    let settleSignal: LoopSignal
    /// Rung when the upkeep shall not wait for its next turn.
    let upkeepSignal: LoopSignal
    /// Rung when retention shall not wait for its next turn, for the worker stops.
    let retentionSignal: LoopSignal
    /// Whether the settling task waits with nothing to write.
    var settleIsIdle = false
    /// Device effects whose device was locked by somebody: tried again by the upkeep.
    var laterEffects: [DeviceEffect] = []
    /// Flushes that the database has not taken yet.
    var unwritten: [UnwrittenFlush] = []
    /// Leases whose flush has failed since the last one that was written.
    var failingLeases: Set<Identifier> = []
    /// When lapsed leases may be recovered, and which claims are to be adopted.
    var recovery: RecoveryGate
    /// What has been warned about of notifications that are pending for long.
    var watch: PendingWatch
    /// When to look for such notifications again.
    var watchesAt = ContinuousClock.now
    /// Routes with work that nobody served at the last look.
    var unserved: Set<RouteNumber> = []
    /// Lanes whose held rows are to be made due: somebody has looked after their configuration.
    var lanesToRetry: Set<Int>
    /// When the registry was last told how the lanes stand.
    var reportedAt: ContinuousClock.Instant?
    /// Whether a lane has changed since.
    var lanesChanged = false
    /// Whether the last statement failed for lack of a connection.
    var storeIsDown = false
    /// When what is left is given up; nil while the worker runs.
    var abortsAt: ContinuousClock.Instant?
    /// Whether a claim may still be answered: its rows would have to be settled.
    var isClaiming = true
    /// Whether claims and flushes have ended for good.
    var isFinished = false
    /// Targets that went back unsent while stopping.
    var releasedWhileStopping = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// A worker that is ready to run. `now` is the database's time at this moment; `seed` makes its draws repeatable.
    package init(
        on loop: EventLoop, store: any OutboxStore, observer: any DispatchObserver, settings: DispatcherSettings,
        lanes: [LaneConfiguration], now: Timestamp, seed: UInt64
    ) {
        self.loop = loop
        self.store = store
        self.observer = observer
        self.settings = settings
        configurations = lanes
        lanesToRetry = Set(lanes.indices)
        recovery = RecoveryGate(lease: settings.dispatch.lease, now: now, at: .now)
        watch = PendingWatch(interval: settings.stuckAfter)
        state = DispatchState(
            settings: settings.dispatch, lanes: lanes.map(\.description),
            clock: DatabaseClock(reading: now, at: .now), seed: seed)
        claimSignal = LoopSignal(on: loop)
        settleSignal = LoopSignal(on: loop)
        upkeepSignal = LoopSignal(on: loop)
        retentionSignal = LoopSignal(on: loop)
    }

    /// Dispatches until it was told to stop and has let go of everything it held. The task must prefer the loop.
    package func run() async {
        lanes = configurations.indices.map { makeLane($0) }
        await refreshRegistry()
        observer.started(lanes: configurations.map(\.description.name), routes: servedRoutes)
        await withDiscardingTaskGroup { group in
            group.addTask { await self.claimWork() }
            group.addTask { await self.settleResults() }
            group.addTask { await self.keepUp() }
            group.addTask { await self.applyRetention() }
        }
        for lane in lanes { await lane.close(within: .zero) }
        observer.stopped(released: releasedWhileStopping)
    }

    /// A notification came: somebody enqueued while this worker said it was asleep.
    package func wake() {
        claimSignal.ring()
    }

    /// Stops claiming, finishes what is in flight within the stop timeout and settles. Called again: aborts at once.
    package func stop() {
        let now = ContinuousClock.now
        if abortsAt == nil {
            abortsAt = now + settings.stopTimeout
            releasedWhileStopping = state.drain(at: now)
            // One try more for devices that were locked; nobody comes back to them afterwards.
            state.returnEffects(laterEffects)
            laterEffects = []
            observer.draining(inFlight: state.inFlight)
            #if CRASH_POINTS
                CrashPoint.draining.reached()
            #endif
        } else {
            abortsAt = now
        }
        claimSignal.ring()
        settleSignal.ring()
        upkeepSignal.ring()
        retentionSignal.ring()
    }

    /// Routes of all lanes.
    var servedRoutes: [Route] {
        state.lanes.flatMap(\.routes).compactMap { routes[$0] }
    }

    private func makeLane(_ index: Int) -> ProviderLane {
        let configuration = configurations[index]
        let client = HTTP2Client(
            configuration.transport, on: loop,
            answered: { [weak self] batch in self?.assumeIsolated { $0.answered(lane: index, &batch) } },
            stateChanged: { [weak self] state in self?.assumeIsolated { $0.transportChanged(lane: index, state) } })
        return ProviderLane(configuration, client: client) { [weak self] access in
            self?.assumeIsolated { $0.accessChanged(lane: index, access) }
        }
    }

    // MARK: Faults of the database

    /// A statement failed: says so once per outage and waits before the caller repeats it.
    func storeFailed(_ error: StoreError, attempt: Int) async {
        noteFailure(error, isNews: attempt == 0)
        let wait = Duration.milliseconds(min(2000, 50 << min(attempt, 6)))
        // Two seconds at most, so that a stop is not held up for longer.
        try? await loop.sleep(for: wait)
    }

    /// Says what failed, once per statement and once per outage.
    func noteFailure(_ error: StoreError, isNews: Bool) {
        if isNews && !(error.kind == .connection && storeIsDown) { observer.storeFailed(error) }
        if error.kind == .connection { storeIsDown = true }
    }

    /// A statement that was sent at `askedAt` was answered; `time` is the database's time in it, where it told.
    func storeAnswered(_ time: Timestamp?, askedAt: ContinuousClock.Instant) {
        if let time { state.heard(time, askedAt: askedAt, at: .now) }
        storeAnswered()
    }

    /// A statement was answered that does not tell the time.
    func storeAnswered() {
        guard storeIsDown else { return }
        storeIsDown = false
        observer.storeRecovered()
    }

    /// Whether results can be written, as far as is known. One lease that is refused again and again holds up nobody;
    /// several without a success in between mean that the ledger cannot be written (a full disk, say), and what would
    /// be sent now might be sent again by whoever comes after us.
    var canWrite: Bool { failingLeases.count < Self.mostFailingLeases }

    private static let mostFailingLeases = 3

    /// Whether the worker gives up on what it could not finish.
    func isAborting(at now: ContinuousClock.Instant) -> Bool {
        abortsAt.map { $0 <= now } ?? false
    }
}
