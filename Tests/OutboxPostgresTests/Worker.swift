import OutboxCore
import Postgres
import Support

@testable import OutboxPostgres

/// A worker without a runtime: sends the store's statements by hand, so that a test can stop between any two of them.
struct Worker {
    let connection: PostgresConnection
    let owner: Identifier

    init(connection: PostgresConnection) {
        self.connection = connection
        var random = SystemRandomNumberGenerator()
        owner = .random(using: &random)
    }

    static func identifier() -> Identifier {
        var random = SystemRandomNumberGenerator()
        return .random(using: &random)
    }

    /// Claims from the default tenant's urgent share of a route.
    func claim(
        _ rows: Int = 100, route: RouteNumber = 1, crashClass: CrashClass = .clean, batch: Identifier = identifier(),
        lease: Duration = .seconds(30), targets: Int = 100, mark: LowWaterMark = .start
    ) async throws -> ClaimedBatch? {
        let request = ClaimRequest(
            batch: batch, route: route, crashClass: crashClass,
            credits: [ShareCredit(share: Share(urgency: 0, tenant: 1), rows: rows, mark: mark)], lease: lease,
            targetsPerRow: targets)
        return try ClaimAnswer.batch(await query(ClaimStatement.command(request, owner: owner)), of: request)
    }

    /// Claims what must be there.
    func claimed(
        _ rows: Int = 100, route: RouteNumber = 1, crashClass: CrashClass = .clean, lease: Duration = .seconds(30),
        targets: Int = 100
    ) async throws -> ClaimedBatch {
        let batch = try await claim(
            rows, route: route, crashClass: crashClass, lease: lease, targets: targets)
        guard let batch else { throw TestSetupError("nothing was there to be claimed") }
        return batch
    }

    func settle(_ settlement: Settlement) async throws -> SettleReport {
        var parameters = SettleParameters()
        let values = parameters.encode(settlement, owner: owner, worker: 0)
        return try SettleStatement.report(await query(PostgresCommand(SettleStatement.statement, values)))
    }

    func renew(_ batch: Identifier, lease: Duration = .seconds(30)) async throws -> [Identifier] {
        try RenewStatement.batches(await query(RenewStatement.command([batch], owner: owner, lease: lease)))
    }

    func adopt(_ batches: Identifier...) async throws -> Int64 {
        try await query(AdoptStatement.command(batches, owner: owner)).int8(0, 0)
    }

    /// A recovery by a worker that knows the time, unless it was told it at `knownAt`.
    func recover(
        knownAt: Timestamp = .init(microseconds: 4_000_000_000_000_000),
        healthySince: Timestamp = .init(microseconds: 0), maxCrashes: Int = 5
    ) async throws -> RecoveryReport {
        try RecoverStatement.report(
            await query(
                RecoverStatement.command(
                    knownAt: knownAt, healthySince: healthySince, limit: 100, maxCrashes: maxCrashes, worker: 0)))
    }

    func recheck(_ batch: ClaimedBatch) async throws -> [SettlementReason?]? {
        let targets = batch.dispatches.flatMap { dispatch in
            batch.targets[dispatch.targets].map {
                RecheckTarget(
                    notification: dispatch.notification, device: $0.device, tokenSequence: $0.tokenSequence)
            }
        }
        return try RecheckStatement.reasons(
            await query(
                RecheckStatement.command(targets, batch: batch.identifier, owner: owner, route: batch.route)))
    }

    /// Writes the answers for the first target of a batch, which an effect has to have its cause in; the rows stay.
    func note(_ answers: OutcomeKind..., of batch: ClaimedBatch) async throws {
        var flush = Settlement(batch: batch.identifier, route: batch.route, positions: batch.dispatches.count)
        flush.ledger = answers.map {
            batch.row(batch.dispatches[0], batch.targets[0], outcome: Outcome($0), final: $0 != .retry)
        }
        _ = try await settle(flush)
    }

    /// Indices of the effects whose device was locked.
    func apply(_ effects: DeviceEffect..., maxFailures: Int = 0) async throws -> [Int] {
        try DeviceEffectStatement.locked(
            await query(DeviceEffectStatement.command(effects, maxFailures: maxFailures)))
    }

    func resolve() async throws -> Int64 {
        try await query(ResolveUnroutedStatement.command(limit: 100)).int8(0, 0)
    }

    /// One whole walk through the queue; how many rows ended.
    func sweep() async throws -> Int {
        try SweepStatement.answer(await query(SweepStatement.command(after: .start, limit: 100))).ended
    }

    func query(_ command: PostgresCommand) async throws -> PostgresResult {
        try await connection.query(command.statement, command.parameters)
    }
}

extension ClaimedBatch {
    /// A flush of these positions (from 1), with one ledger row per target; more is added by the test.
    func flush(
        _ positions: Int..., outcome: Outcome = Outcome(.delivered, status: 200), final: Bool = true,
        retryAfter: Duration? = nil
    ) -> Settlement {
        var settlement = Settlement(batch: identifier, route: route, positions: dispatches.count)
        for position in positions {
            settlement.leaving.append(Int16(position))
            let dispatch = dispatches[position - 1]
            for target in targets[dispatch.targets] {
                settlement.ledger.append(
                    row(dispatch, target, outcome: outcome, final: final, retryAfter: retryAfter))
            }
        }
        return settlement
    }

    /// One ledger row.
    func row(
        _ dispatch: ClaimedDispatch, _ target: ClaimedTarget, outcome: Outcome, final: Bool, retryAfter: Duration? = nil
    ) -> LedgerRow {
        var random = SystemRandomNumberGenerator()
        let position = (dispatches.firstIndex { $0.notification == dispatch.notification } ?? 0) + 1
        return LedgerRow(
            identifier: .timeOrdered(at: claimedAt, using: &random), notification: dispatch.notification,
            tenant: dispatch.share.tenant, device: target.device, tokenSequence: target.tokenSequence,
            attempt: dispatch.attempt, position: Int16(position), outcome: outcome, isFinal: final,
            retryAfter: retryAfter, attemptedAt: claimedAt, answeredAt: claimedAt + .milliseconds(3))
    }

    /// An effect on the first target of the first row.
    func effect(_ change: DeviceEffect.Change, asOf: Timestamp? = nil) -> DeviceEffect {
        DeviceEffect(
            device: targets[0].device, tokenSequence: targets[0].tokenSequence, change: change,
            asOf: asOf ?? claimedAt, notification: dispatches[0].notification)
    }

    /// Devices of each row's targets.
    var devices: [[Int64]] {
        dispatches.map { targets[$0.targets].map(\.device) }
    }
}

extension QueueReturn {
    /// A position that goes back, due at once unless said otherwise.
    static func back(
        _ position: Int16, after delay: Duration = .zero, attempt: Int16 = 1, cursor: PageCursor = .start,
        clears: Bool = true
    ) -> QueueReturn {
        QueueReturn(
            position: position, delay: delay, attempt: attempt, cursor: cursor, clearsCrashes: clears)
    }
}
