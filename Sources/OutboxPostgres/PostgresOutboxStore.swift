package import EventLoop
package import OutboxCore
package import Postgres

/// The outbox in PostgreSQL: two sessions, so that claiming and settling overlap. Both are made again when they break.
/// Hooks of kinds are asked on others (`HookSessions`), and retention is applied on another (`RetentionSession`).
///
/// Claims and awake keys use the first, for the keys belong to the session; everything that follows from a claim uses
/// the second. Each call is one statement in autocommit.
package actor PostgresOutboxStore: OutboxStore {
    private let loop: EventLoop
    private let claims: PostgresSession
    private let results: PostgresSession
    private let hookSessions: HookSessions
    private let retention: RetentionSession
    private let keys: AwakeKeys

    /// Fresh per process start: the leases' fence.
    package nonisolated let owner: Identifier
    private let name: String
    private var worker: Int32 = 0
    private var settling = SettleParameters()
    private var scans: [RouteNumber: WaitingStatement.Cursor] = [:]
    private var watchScans: [RouteNumber: WaitingStatement.Cursor] = [:]
    private var sweep: SweepStatement.Cursor?
    private var nextSweep = ContinuousClock.now
    private var nextPruning = ContinuousClock.now

    /// What a worker's session sets: the planner without the paths that make small or fresh tables slow; no compiling,
    /// for a path that is off counts as so dear that each call would be compiled anew, 20 ms of CPU for a statement of
    /// 60 µs; and limits within which no statement of the worker ever gets in a healthy database.
    package static let sessionSettings: [(name: String, value: String)] = [
        ("enable_seqscan", "off"), ("enable_hashjoin", "off"), ("enable_mergejoin", "off"),
        ("enable_bitmapscan", "off"), ("jit", "off"),
        ("plan_cache_mode", "force_generic_plan"), ("TimeZone", "UTC"), ("statement_timeout", "10s"),
        ("lock_timeout", "1s"), ("idle_in_transaction_session_timeout", "10s"),
    ]

    /// How often overdue rows that nobody claims are looked for, and how many rows one look passes.
    private static let sweepInterval = Duration.seconds(60)
    private static let sweepLength = 1000
    /// How many idempotency keys one call removes: a few milliseconds of a transaction, and more in a second than apps
    /// register.
    private static let pruneLength = 5000

    /// A store for one worker. `configuration` gets `sessionSettings` unless it names settings of its own. `name` is
    /// what the ledger calls the worker; `observe` hears, on the loop, what happens to the two sessions.
    package init(
        _ configuration: PostgresConfiguration, on loop: EventLoop, owner: Identifier, name: String,
        observe: @escaping @Sendable (PostgresSessionEvent) -> Void = { _ in }
    ) {
        var configuration = configuration
        if configuration.settings.isEmpty { configuration.settings = Self.sessionSettings }
        self.loop = loop
        self.owner = owner
        self.name = name
        let keys = AwakeKeys(on: loop)
        self.keys = keys
        claims = PostgresSession(
            configuration, on: loop,
            prepare: { (_: PostgresConnection) async throws(PostgresError) in await keys.forget() }, observe: observe)
        results = PostgresSession(configuration, on: loop, observe: observe)
        hookSessions = HookSessions(configuration, on: loop)
        retention = RetentionSession(configuration, on: loop)
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Begins to connect.
    package func start() async {
        await claims.start()
        await results.start()
    }

    /// Closes both sessions for good.
    package func stop() async {
        await hookSessions.stop()
        await retention.stop()
        await claims.stop()
        await results.stop()
    }

    // MARK: Registries

    package func routes() async throws(StoreError) -> [Route] {
        try await ask(results, PostgresCommand(CatalogStatement.routes), CatalogAnswer.routes)
    }

    package func kinds() async throws(StoreError) -> [Kind] {
        try await ask(results, PostgresCommand(CatalogStatement.kinds), CatalogAnswer.kinds)
    }

    package func hooks() async throws(StoreError) -> [KindHook] {
        await hookSessions.tidy()
        return try await ask(results, PostgresCommand(HookStatement.list), HookStatement.hooks)
    }

    package func ask(_ hooks: [KindHook], about notifications: [Identifier]) async throws(HookFault) -> [HookReply] {
        try await hookSessions.ask(hooks, about: notifications)
    }

    package func register(
        lanes: [LaneReport], hooks: [HookReport], version: String
    ) async throws(StoreError) -> Timestamp {
        let command = WorkerStatement.registration(
            owner: owner, name: name, version: version, lanes: lanes, hooks: hooks)
        let (number, now) = try await ask(results, command) { (result) throws(PostgresError) in
            (try result.int4(0, 0), try result.instant(0, 1))
        }
        worker = number
        return now
    }

    package func unregister() async throws(StoreError) {
        try await ask(results, WorkerStatement.end(owner: owner)) { _ in }
    }

    /// Since when both sessions stand; nil while one of them is down.
    package func connectedSince() async -> ContinuousClock.Instant? {
        guard let first = await claims.healthySince, let second = await results.healthySince else { return nil }
        return max(first, second)
    }

    // MARK: Claiming

    package func waitingWork(on routes: [RouteNumber]) async throws(StoreError) -> WaitingWork {
        let (work, next) = try await scan(routes, after: routes.map { scans[$0] ?? .start })
        // A route whose scan was cut off goes on behind it the next time. One that came to its end in the middle of a
        // round begins anew at once, for what it has passed may be due.
        let ended = routes.filter { scans[$0] != nil && next[$0] == nil }
        scans = next
        guard !ended.isEmpty else { return work }
        let (rest, following) = try await scan(ended, after: ended.map { _ in .start })
        scans.merge(following) { _, new in new }
        return WaitingWork(now: rest.now, shares: work.shares + rest.shares.filter { !work.shares.contains($0) })
    }

    private func scan(
        _ routes: [RouteNumber], after cursors: [WaitingStatement.Cursor]
    ) async throws(StoreError) -> (work: WaitingWork, next: [RouteNumber: WaitingStatement.Cursor]) {
        // Without routes it is the upkeep that asks for the time. It must not wait for the claims' session: while that
        // one is half-open, the other one is to be found out by what the upkeep asks on it.
        let session = routes.isEmpty ? results : claims
        return try await ask(session, WaitingStatement.command(routes, after: cursors), WaitingAnswer.read)
    }

    package func claim(_ request: ClaimRequest) async throws(StoreError) -> ClaimedBatch? {
        try await ask(claims, ClaimStatement.command(request, owner: owner)) { (result) throws(PostgresError) in
            try ClaimAnswer.batch(result, of: request)
        }
    }

    package func holdAwake(_ routes: [RouteNumber]) async throws(StoreError) -> [RouteNumber] {
        let held = await keys.held
        let wanted = routes.filter { !held.contains($0) }
        guard !wanted.isEmpty else { return routes }
        let got = try await ask(claims, AwakeStatement.command(AwakeStatement.hold, wanted)) {
            (result) throws(PostgresError) in
            var got: [RouteNumber] = []
            for row in 0..<result.rowCount { got.append(try result.int2(row, 0)) }
            return got
        }
        await keys.add(got)
        return routes.filter { held.contains($0) || got.contains($0) }
    }

    package func releaseAwake() async throws(StoreError) {
        let held = await keys.held
        guard !held.isEmpty else { return }
        await keys.forget()
        try await ask(claims, AwakeStatement.command(AwakeStatement.release, held.sorted())) { _ in }
    }

    // MARK: Settling

    package func settle(_ settlement: Settlement) async throws(StoreError) -> SettleReport {
        let refusal: StoreError
        do {
            return try await write(settlement)
        } catch {
            guard error.kind == .content else { throw error }
            refusal = error
        }
        // Narrowed down by halves: the ledger rows first, then what moves without what could not be written.
        var refused: Set<Int16> = []
        let written = try await writeLedger(settlement.ledger[...], of: settlement, &refused)
        let movable = settlement.leaving.filter { !refused.contains($0) }
        let moved = try await move(movable[...], of: settlement, &refused)
        return SettleReport(
            owned: moved.owned, ledgerRows: written, returned: moved.returned,
            refused: refused, refusal: refused.isEmpty ? nil : refusal)
    }

    /// Writes ledger rows and nothing else; answers how many were new. Positions whose row is refused go to `refused`.
    private func writeLedger(
        _ ledger: ArraySlice<LedgerRow>, of settlement: Settlement, _ refused: inout Set<Int16>
    ) async throws(StoreError) -> Int {
        do {
            return try await write(settlement.part(ledger: ledger, leaving: [])).ledgerRows
        } catch {
            guard error.kind == .content else { throw error }
            if ledger.count == 1, let row = ledger.first {
                guard row != row.withoutTexts else {
                    refused.insert(row.position)
                    return 0
                }
                // The outcome stands; what the provider said about it could not be stored.
                return try await writeLedger([row.withoutTexts], of: settlement, &refused)
            }
        }
        let middle = ledger.startIndex + ledger.count / 2
        let first = try await writeLedger(ledger[..<middle], of: settlement, &refused)
        return first + (try await writeLedger(ledger[middle...], of: settlement, &refused))
    }

    /// Lets positions leave, whose ledger rows are written. Those that are refused go to `refused`.
    private func move(
        _ leaving: ArraySlice<Int16>, of settlement: Settlement, _ refused: inout Set<Int16>
    ) async throws(StoreError) -> SettleReport {
        do {
            return try await write(settlement.part(ledger: [], leaving: leaving))
        } catch {
            guard error.kind == .content, !leaving.isEmpty else { throw error }
            if leaving.count == 1 {
                refused.formUnion(leaving)
                return SettleReport(owned: true, ledgerRows: 0, returned: 0)
            }
        }
        let middle = leaving.startIndex + leaving.count / 2
        let first = try await move(leaving[..<middle], of: settlement, &refused)
        let second = try await move(leaving[middle...], of: settlement, &refused)
        return SettleReport(
            owned: first.owned && second.owned, ledgerRows: 0, returned: first.returned + second.returned)
    }

    private func write(_ settlement: Settlement) async throws(StoreError) -> SettleReport {
        let parameters = settling.encode(settlement, owner: owner, worker: worker)
        let command = PostgresCommand(SettleStatement.statement, parameters)
        return try await ask(results, command, SettleStatement.report)
    }

    package func renew(_ batches: [Identifier], lease: Duration) async throws(StoreError) -> [Identifier] {
        try await ask(
            results, RenewStatement.command(batches, owner: owner, lease: lease), RenewStatement.batches)
    }

    package func recheck(
        _ targets: [RecheckTarget], batch: Identifier, route: RouteNumber
    ) async throws(StoreError) -> [SettlementReason?] {
        let command = RecheckStatement.command(targets, batch: batch, owner: owner, route: route)
        guard let reasons = try await ask(results, command, RecheckStatement.reasons) else {
            throw StoreError(kind: .refused, operation: "recheck", message: "the lease is not ours any more")
        }
        return reasons
    }

    package func apply(_ effects: [DeviceEffect], maxFailures: Int) async throws(StoreError) -> [Int] {
        guard !effects.isEmpty else { return [] }
        let command = DeviceEffectStatement.command(effects, maxFailures: maxFailures)
        return try await ask(results, command, DeviceEffectStatement.locked)
    }

    // MARK: Upkeep

    package func adopt(_ batches: [Identifier]) async throws(StoreError) -> Int {
        guard !batches.isEmpty else { return 0 }
        return try await ask(results, AdoptStatement.command(batches, owner: owner), Self.count)
    }

    package func recover(
        knownAt: Timestamp, healthySince: Timestamp, limit: Int, maxCrashes: Int
    ) async throws(StoreError) -> RecoveryReport {
        let command = RecoverStatement.command(
            knownAt: knownAt, healthySince: healthySince, limit: limit, maxCrashes: maxCrashes, worker: worker)
        return try await ask(results, command, within: Self.recoveryLimit, RecoverStatement.report)
    }

    package func retryHeld(on routes: [RouteNumber], limit: Int) async throws(StoreError) -> Int {
        try await ask(results, RetryHeldStatement.command(on: routes, limit: limit), Self.count)
    }

    package func resolveUnrouted(limit: Int) async throws(StoreError) -> Int {
        let resolved = try await ask(results, ResolveUnroutedStatement.command(limit: limit), Self.count)
        let ended = try await endOverdue()
        // Last: what cannot be removed must hold up no end.
        try await pruneKeys()
        return resolved + ended
    }

    /// Once a minute, and again at the next call as long as there is more than one call removes.
    private func pruneKeys() async throws(StoreError) {
        guard nextPruning <= .now else { return }
        let pruned = try await ask(results, PruneKeysStatement.command(limit: Self.pruneLength), Self.count)
        if pruned < Self.pruneLength { nextPruning = .now + Self.sweepInterval }
    }

    /// One stretch of the walk through the queue; a walk begins once a minute.
    private func endOverdue() async throws(StoreError) -> Int {
        if sweep == nil {
            guard nextSweep <= .now else { return 0 }
            nextSweep = .now + Self.sweepInterval
        }
        let command = SweepStatement.command(after: sweep ?? .start, limit: Self.sweepLength)
        let (ended, next) = try await ask(results, command, SweepStatement.answer)
        sweep = next
        return ended
    }

    package func preparePartitions() async throws(StoreError) {
        try await ask(results, PartitionStatement.command(daysAhead: 3, lockTimeout: "200ms")) { _ in }
    }

    package func retain() async throws(StoreError) -> Bool {
        do { return try await retention.retain() } catch { throw StoreError(error) }
    }

    package func longPending(
        on routes: [RouteNumber], olderThan age: Duration, limit: Int
    ) async throws(StoreError) -> [LongPending] {
        let scan = WaitingStatement.command(routes, after: routes.map { watchScans[$0] ?? .start })
        let (shares, next) = try await ask(results, scan) { (result) throws(PostgresError) in
            try LongPendingStatement.shares(result, olderThan: age)
        }
        watchScans = next
        let command = LongPendingStatement.command(
            on: routes, shares, olderThan: age, limit: limit, worker: worker)
        return try await ask(results, command, LongPendingStatement.pending)
    }

    package func unservedRoutes() async throws(StoreError) -> [RouteNumber] {
        try await ask(results, PostgresCommand(UnservedStatement.statement), UnservedStatement.routes)
    }

    /// How long a recovery may wait for a connection and run. One that waits out an outage would meet leases of this
    /// very worker that it had no chance to renew, before their results are written.
    private static let recoveryLimit = Duration.seconds(10)

    // MARK: Asking

    private static func count(_ result: PostgresResult) throws(PostgresError) -> Int {
        Int(try result.int8(0, 0))
    }

    private func ask<Answer: Sendable>(
        _ session: PostgresSession, _ command: PostgresCommand, within limit: Duration? = nil,
        _ read: (PostgresResult) throws(PostgresError) -> Answer
    ) async throws(StoreError) -> Answer {
        do {
            let deadline = limit.map { ContinuousClock.now + $0 }
            return try read(try await session.query(command.statement, command.parameters, deadline: deadline))
        } catch {
            throw StoreError(error)
        }
    }
}
