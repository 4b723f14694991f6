import OutboxCore
import OutboxPostgres
import Postgres
import Support

/// A worker without a runtime: the product's own store, whose statements a race sends at the instant it chooses.
struct RaceWorker: Sendable {
    let store: PostgresOutboxStore
    let owner: Identifier

    init(_ database: TemporaryDatabase, owner: Identifier? = nil) async throws {
        var random = SystemRandomNumberGenerator()
        self.owner = owner ?? .random(using: &random)
        store = PostgresOutboxStore(
            try database.configuration(role: "postbell_dispatcher", worker: true), on: DatabaseServer.loop,
            owner: self.owner, name: "racer")
        await store.start()
    }

    func stop() async {
        await store.stop()
    }

    /// Claims from the default tenant's urgent share; nil when nothing was there.
    func claim(
        _ route: RouteNumber, rows: Int = 1, crashClass: CrashClass = .clean, lease: Duration = .seconds(300)
    ) async throws -> ClaimedBatch? {
        var random = SystemRandomNumberGenerator()
        return try await store.claim(
            ClaimRequest(
                batch: .random(using: &random), route: route, crashClass: crashClass,
                credits: [ShareCredit(share: Share(urgency: 0, tenant: 1), rows: rows, mark: .start)], lease: lease,
                targetsPerRow: 100))
    }

    /// Claims what is about to be there, as often as it takes.
    func claimed(
        _ route: RouteNumber, rows: Int = 1, crashClass: CrashClass = .clean, lease: Duration = .seconds(300)
    ) async throws -> ClaimedBatch {
        for _ in 0..<20_000 {
            if let batch = try await claim(route, rows: rows, crashClass: crashClass, lease: lease) { return batch }
        }
        throw TestSetupError("nothing came to be claimed on route \(route)")
    }

    /// Settles, and again what the database asks to repeat, as the runtime does.
    @discardableResult
    func settle(_ settlement: Settlement) async throws -> SettleReport {
        for _ in 0..<10 {
            do { return try await store.settle(settlement) } catch {
                guard error.kind == .transient else { throw error }
            }
        }
        throw TestSetupError("a settle was refused ten times")
    }

    /// Whether each target of a batch may still be sent to; the reason where not.
    func recheck(_ batch: ClaimedBatch) async throws -> [SettlementReason?] {
        let targets = batch.dispatches.flatMap { dispatch in
            batch.targets[dispatch.targets].map {
                RecheckTarget(notification: dispatch.notification, device: $0.device, tokenSequence: $0.tokenSequence)
            }
        }
        return try await store.recheck(targets, batch: batch.identifier, route: batch.route)
    }
}

extension ClaimedBatch {
    /// A flush in which every row leaves, each target with a final row of this outcome, as the core makes it.
    func flush(_ outcome: Outcome = Outcome(.delivered, status: 200)) -> Settlement {
        var settlement = Settlement(batch: identifier, route: route, positions: dispatches.count)
        for (index, dispatch) in dispatches.enumerated() {
            settlement.leaving.append(Int16(index + 1))
            for target in targets[dispatch.targets] {
                settlement.ledger.append(row(dispatch, target, position: index + 1, outcome))
            }
        }
        return settlement
    }

    /// One final ledger row.
    func row(
        _ dispatch: ClaimedDispatch, _ target: ClaimedTarget, position: Int = 1,
        _ outcome: Outcome = Outcome(.delivered, status: 200)
    ) -> LedgerRow {
        var random = SystemRandomNumberGenerator()
        return LedgerRow(
            identifier: .timeOrdered(at: claimedAt, using: &random), notification: dispatch.notification,
            tenant: dispatch.share.tenant, device: target.device, tokenSequence: target.tokenSequence,
            attempt: dispatch.attempt, position: Int16(position), outcome: outcome, isFinal: true, retryAfter: nil,
            attemptedAt: claimedAt, answeredAt: claimedAt + .milliseconds(1))
    }

    /// Devices of all targets.
    var devices: [Int64] { targets.map(\.device) }
}
