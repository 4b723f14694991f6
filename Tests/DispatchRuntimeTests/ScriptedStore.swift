import OutboxCore
import Support

/// An outbox with one due row on route 1 that says which calls came, and answers a claim when it is told to. However
/// often it is claimed, the row is there again.
actor ScriptedStore: OutboxStore {
    static let now = Timestamp(microseconds: 1_700_000_000_000_000)

    private(set) var settlements: [Settlement] = []
    /// Claims that were asked for and got the row, those that found it locked, and searches.
    private(set) var claims = 0
    private(set) var misses = 0
    private(set) var searches = 0
    /// The tenants that have work, and those that the last claim had credits for.
    private(set) var tenants: [Int32] = [1]
    private(set) var credited: [Int32] = []
    /// Leases that were renewed, in order.
    private(set) var renewed: [Identifier] = []
    /// Since when its sessions stand.
    let connected = ContinuousClock.now
    private let row: Bool
    private let claimAsked = Turnstile(0)
    private let claimMayAnswer = Turnstile(0)
    private let keysReleased = Turnstile(0)

    /// What the first lease's flushes are refused with until another one's was written.
    private let refusal: StoreError?
    private var refused: Identifier?
    /// What looking for held rows is refused with, and how often that was asked for.
    private let heldRefusal: StoreError?
    private(set) var retriesOfHeld = 0
    /// What each lease's flushes are refused with, until `allowSettles`.
    private var fullRefusal: StoreError?
    private let settleRefused = Turnstile(0)
    private let settled = Turnstile(0)
    private let recoveryAsked = Turnstile(0)
    private let retryAsked = Turnstile(0)
    private let retryMayAnswer = Turnstile(0)
    private let holdsRetries: Bool
    /// What applying retention is refused with, and how often that was asked for.
    private let retentionRefusal: StoreError?
    private(set) var retentions = 0
    private let retentionAsked = Turnstile(0)
    private let renewal = Turnstile(0)
    /// The row's kind; nil when kinds cannot be read.
    private let kind: Kind?

    /// `row`: whether a claim gets the row, or finds it locked.
    /// `holdsRetries`: whether looking for held rows waits for `answerRetry`.
    init(
        row: Bool, refusal: StoreError? = nil, heldRefusal: StoreError? = nil, holdsRetries: Bool = false,
        fullRefusal: StoreError? = nil, retentionRefusal: StoreError? = nil, kind: Kind? = nil
    ) {
        self.retentionRefusal = retentionRefusal
        self.kind = kind
        self.fullRefusal = fullRefusal
        self.row = row
        self.refusal = refusal
        self.heldRefusal = heldRefusal
        self.holdsRetries = holdsRetries
    }

    func answerRetry() async { await retryMayAnswer.leave() }
    func allowSettles() { fullRefusal = nil }
    func waitForRefusedSettle() async { await settleRefused.enter() }
    func waitForSettle() async { await settled.enter() }
    func waitForRecovery() async { await recoveryAsked.enter() }
    func waitForRetry() async { await retryAsked.enter() }
    func waitForRetention() async { await retentionAsked.enter() }
    func waitForRenewal() async { await renewal.enter() }
    func giveWork(to tenant: Int32) { tenants.append(tenant) }

    func waitForClaim() async { await claimAsked.enter() }
    func answerClaim() async { await claimMayAnswer.leave() }
    func waitForReleaseOfKeys() async { await keysReleased.enter() }

    func routes() async throws(StoreError) -> [Route] {
        [Route(number: 1, provider: "apns", environment: "sandbox", app: "org.example.app")]
    }

    func kinds() async throws(StoreError) -> [Kind] {
        if let kind { return [kind] }
        throw StoreError(kind: .transient, operation: "kinds", message: "refused by the script")
    }

    func register(
        lanes: [LaneReport], hooks: [HookReport], version: String
    ) async throws(StoreError) -> Timestamp { Self.now }

    func connectedSince() -> ContinuousClock.Instant? { connected }

    func unregister() async throws(StoreError) {}

    func waitingWork(on routes: [RouteNumber]) async throws(StoreError) -> WaitingWork {
        searches += 1
        let due = tenants.map {
            WaitingShare(route: 1, crashClass: .clean, share: Share(urgency: 0, tenant: $0), dueAt: Self.now)
        }
        // Its clock goes with ours: one that stands still looks as if it was set.
        return WaitingWork(now: Self.now + connected.duration(to: .now), shares: routes.isEmpty ? [] : due)
    }

    func claim(_ request: ClaimRequest) async throws(StoreError) -> ClaimedBatch? {
        guard row else {
            misses += 1
            return nil
        }
        claims += 1
        credited = request.credits.map(\.share.tenant)
        await claimAsked.leave()
        await claimMayAnswer.enter()
        let dispatch = ClaimedDispatch(
            notification: Identifier(high: 1, low: 1), share: Share(urgency: 0, tenant: 1), dueAt: Self.now, attempt: 1,
            crashes: 0, prior: false, cursor: .start, verdict: .send, kind: 1, createdAt: Self.now,
            expiresAt: Self.now + .seconds(3600), payload: 0..<2, collapseKey: 0..<0, thread: 0..<0, badge: nil,
            silent: false, heldUntil: nil, nobody: nil, targets: 0..<1)
        let target = ClaimedTarget(
            device: 1, token: 2..<7, tokenSequence: 1, spentAttempts: 0, notesSuccess: false)
        return ClaimedBatch(
            identifier: request.batch, route: 1, claimedAt: Self.now, dispatches: [dispatch], targets: [target],
            text: Array("{}token".utf8))
    }

    func settle(_ settlement: Settlement) async throws(StoreError) -> SettleReport {
        if let fullRefusal {
            await settleRefused.leave()
            throw fullRefusal
        }
        if settlements.isEmpty, let refusal {
            refused = refused ?? settlement.batch
            if settlement.batch == refused { throw refusal }
        }
        settlements.append(settlement)
        await settled.leave()
        return SettleReport(
            owned: true, ledgerRows: settlement.ledger.count, returned: settlement.returns.count)
    }

    func renew(_ batches: [Identifier], lease: Duration) async throws(StoreError) -> [Identifier] {
        renewed += batches
        await renewal.leave()
        return batches
    }

    func adopt(_ batches: [Identifier]) async throws(StoreError) -> Int { 0 }

    func recover(
        knownAt: Timestamp, healthySince: Timestamp, limit: Int, maxCrashes: Int
    ) async throws(StoreError) -> RecoveryReport {
        await recoveryAsked.leave()
        return RecoveryReport(leases: 0, rows: 0, unknowns: 0, setAside: 0)
    }

    func retryHeld(on routes: [RouteNumber], limit: Int) async throws(StoreError) -> Int {
        await retryAsked.leave()
        if holdsRetries { await retryMayAnswer.enter() }
        retriesOfHeld += 1
        if let heldRefusal { throw heldRefusal }
        return 0
    }

    func recheck(
        _ targets: [RecheckTarget], batch: Identifier, route: RouteNumber
    ) async throws(StoreError) -> [SettlementReason?] { targets.map { _ in nil } }

    func apply(_ effects: [DeviceEffect], maxFailures: Int) async throws(StoreError) -> [Int] { [] }

    func resolveUnrouted(limit: Int) async throws(StoreError) -> Int { 0 }

    func longPending(
        on routes: [RouteNumber], olderThan age: Duration, limit: Int
    ) async throws(StoreError) -> [LongPending] { [] }

    func unservedRoutes() async throws(StoreError) -> [RouteNumber] { [] }

    func preparePartitions() async throws(StoreError) {}

    func retain() async throws(StoreError) -> Bool {
        retentions += 1
        await retentionAsked.leave()
        if let retentionRefusal { throw retentionRefusal }
        return retentions == 1
    }

    func holdAwake(_ routes: [RouteNumber]) async throws(StoreError) -> [RouteNumber] { routes }

    func releaseAwake() async throws(StoreError) { await keysReleased.leave() }
}
