import OutboxCore

@testable import Simulation

/// One step of a conformance run, in words that mean the same to every store: notifications by their key, batches and
/// workers by a number.
enum StoreCommand: CustomStringConvertible {
    case register(client: String, principal: String, tenant: Int, route: RouteNumber, token: Int)
    case revoke(device: Int64)
    case mute(device: Int64, Bool)
    case hold(device: Int64)
    /// An open transaction holds the queue rows of a notification.
    case holdRows(key: String)
    case letGo
    case enqueue(SimulatedStore.Draft)
    case supersede(tenant: Int, subject: String)
    case cancel(key: String)
    case requeue(key: String, minutes: Int)
    case see(tenant: Int, principal: String, subject: String)
    case erase(tenant: Int, thread: String)
    case setHook(HookPurpose, Bool)
    /// What the app knows and does wrong from now on.
    case app(over: String? = nil, barred: String? = nil, raises: HookPurpose? = nil, mixesUp: HookPurpose? = nil)
    /// Asks the hooks about the notifications of a batch that are of their kind.
    case askHooks(worker: Int, batch: Int)
    case beat(worker: Int)
    case signOff(worker: Int)
    case advance(minutes: Int)
    /// A claim of all shares of a route, under the next batch number.
    case claim(worker: Int, route: RouteNumber, CrashClass, rows: Int, targets: Int, minutes: Int)
    /// A flush of some positions of a batch, each with a fate.
    case settle(worker: Int, batch: Int, [Fate])
    /// The last flush once more.
    case repeatSettle(worker: Int)
    case renew(worker: Int, batches: [Int], minutes: Int)
    case adopt(worker: Int, batches: [Int])
    /// By a worker that last read the clock so many minutes ago, and was connected so many; negative: is not yet.
    case recover(worker: Int, known: Int = 0, connected: Int, maxCrashes: Int)
    case recheck(worker: Int, batch: Int)
    /// Effects on all targets of a batch; `age` is how many minutes before now the provider knew.
    case effects(worker: Int, batch: Int, DeviceEffect.Change, age: Int, maxFailures: Int)
    case resolve(worker: Int)
    case retryHeld(worker: Int, route: RouteNumber)
    case waiting(worker: Int)

    /// What a flush makes of one notification of a batch.
    struct Fate {
        var key: String
        var outcome: OutcomeKind?
        var isFinal = true
        /// Of the target, in minutes.
        var wait: Int?
        var leaves = true
        /// Back into the queue after so many minutes.
        var back: Int?
        var attempt: Int16 = 1
        var cursor = PageCursor.start
        var clears = true
        var end: SettlementStatus?
        var isWhole = false
    }

    var description: String {
        switch self {
        case .enqueue(let draft): "enqueue \(draft.key)"
        case .settle(let worker, let batch, let fates):
            "settle(\(worker), \(batch), \(fates.map { "\($0.key) \($0.outcome.map { $0.name } ?? "-")" }))"
        default: Mirror(reflecting: self).children.first.map { "\($0.label ?? "")\($0.value)" } ?? "let go"
        }
    }
}

/// A store under test: the simulated one, or PostgreSQL through the product's own statements.
protocol StoreSubject {
    /// Carries out one step; answers what the caller of the step sees, in lines that are equal for equal stores.
    func perform(_ command: StoreCommand) async throws -> [String]
    /// All that is in the store: places, ledger, settlements, devices, events.
    func contents() async throws -> [String]
}

/// The flush of a step for a batch as its store answered it.
struct FlushMaker {
    private var random = SplitMix(seed: 11)

    mutating func flush(
        _ batch: ClaimedBatch, _ fates: [StoreCommand.Fate], keys: [Identifier: String]
    ) -> Settlement {
        var flush = Settlement(batch: batch.identifier, route: batch.route, positions: batch.dispatches.count)
        for fate in fates {
            guard let index = batch.dispatches.firstIndex(where: { keys[$0.notification] == fate.key }) else {
                continue
            }
            let dispatch = batch.dispatches[index]
            let position = Int16(index + 1)
            if let outcome = fate.outcome {
                for target in batch.targets[dispatch.targets] {
                    flush.ledger.append(
                        LedgerRow(
                            identifier: .timeOrdered(at: batch.claimedAt, using: &random),
                            notification: dispatch.notification, tenant: dispatch.share.tenant, device: target.device,
                            tokenSequence: target.tokenSequence, attempt: dispatch.attempt, position: position,
                            outcome: Outcome(outcome, status: 200 + outcome.rawValue, reason: "reason"),
                            isFinal: fate.isFinal, retryAfter: fate.wait.map { .seconds($0 * 60) },
                            attemptedAt: batch.claimedAt, answeredAt: nil))
                }
            }
            guard fate.leaves else { continue }
            flush.leaving.append(position)
            if let back = fate.back {
                flush.returns.append(
                    QueueReturn(
                        position: position, delay: .seconds(back * 60), attempt: fate.attempt,
                        cursor: fate.cursor, clearsCrashes: fate.clears))
            } else if let end = fate.end {
                flush.ends.append(
                    PositionEnd(position: position, status: end, reason: .cancelled, wholeNotification: fate.isWhole))
            }
        }
        flush.leaving.sort()
        return flush
    }
}

/// What a claim answered, without what is random in it.
struct BatchText {
    static func lines(_ batch: ClaimedBatch?, keys: [Identifier: String], minute: (Timestamp) -> Int) -> [String] {
        guard let batch else { return ["nothing"] }
        return batch.dispatches.map { row in
            let targets = batch.targets[row.targets].map { target in
                "\(target.device)/\(target.tokenSequence)/\(String(decoding: batch[target.token], as: UTF8.self))/"
                    + "\(target.spentAttempts)\(target.notesSuccess ? "!" : "")"
            }
            let held = row.heldUntil.map { "held \(minute($0))" } ?? "-"
            func text(_ range: TextRange) -> String { String(decoding: batch[range], as: UTF8.self) }
            let content = row.verdict == .orphan ? "" : "kind \(row.kind) \(text(row.payload)) \(text(row.thread))"
            return
                "\(keys[row.notification] ?? "?") \(row.verdict) \(content)"
                + " share \(row.share.urgency).\(row.share.tenant)"
                + " due \(minute(row.dueAt)) attempt \(row.attempt) crashes \(row.crashes) prior \(row.prior)"
                + " after \(row.cursor.rawValue) page end \(row.pageEnd ?? 0) \(row.nobody?.rawValue ?? "-") \(held)"
                + " key \(text(row.collapseKey)) \(targets)"
        }.sorted()
    }

    static func lines(_ work: WaitingWork, minute: (Timestamp) -> Int) -> [String] {
        work.shares.map {
            "route \($0.route) class \($0.crashClass) share \($0.share.urgency).\($0.share.tenant)"
                + " due \(minute($0.dueAt))"
        }.sorted()
    }

    static func line(_ report: SettleReport) -> [String] {
        ["owned \(report.owned) rows \(report.ledgerRows) returned \(report.returned)"]
    }

    static func line(_ report: RecoveryReport) -> [String] {
        ["leases \(report.leases) rows \(report.rows) unknowns \(report.unknowns) aside \(report.setAside)"]
    }
}
