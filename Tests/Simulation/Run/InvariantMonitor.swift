import OutboxCore

/// Holds a run to its rules, after each event that can break one; the first that breaks ends the run.
///
/// | rule | what it says |
/// | --- | --- |
/// | `two_places` | a dispatch is in the queue or in one lease, never in two places |
/// | `lost` | a dispatch leaves its places only with an end: a settlement, or a final ledger row |
/// | `left_out` | and only when all devices that it was for have a final row, unless a settlement says otherwise |
/// | `history_forgotten` | what has ledger rows is in the queue as `prior` |
/// | `crash_class` | rows with one crash are claimed in 32 at most, with two or more alone |
/// | `no_claim` | no request without a committed claim of that batch, notification and device |
/// | `sent_twice` | one request at most for a target of a lease |
/// | `sent_again` | none for a target that had a final row when its claim was made |
/// | `too_early` | none for a target whose own wait on this route was not over then |
/// | `over` | none for a notification that was over when its claim was made |
/// | `fell_out` | none for a target that a re-check let fall out |
/// | `unasked` | none of a kind with hooks that they have not let through, or too long ago |
/// | `stale_check` | none when the last check is too old |
/// | `lease_gone` | none after the lease went to somebody else, unless the database's clock was set |
/// | `near_end` | none that may outlive its lease, unless the database's clock was set |
/// | `too_late` | none after the deadline, by the database's clock |
/// | `other_key` | all requests of a notification carry the same collapse key |
/// | `needless` | no lease is recovered whose holder is well and was all the time |
/// | `blamed` | a lapse is no crash when the database was away before it, or its clock was set forward by more than a
/// second, unless of the dead |
/// | `token_wiped` | a token leaves the registry only when the provider called it dead in its present registration |
/// | `late_effect` | nothing is done to a device but what an answer in time has said |
/// | `untrue` | the ledger says of each request what the provider's own log says, or `unknown` |
/// | `unrecorded` | each request is on the ledger |
/// | `twice` | accepted twice only when the answer to the first was lost, or came too late |
/// | `two_ends` | one on-time final row at most for a target of a lease |
/// | `stuck` | without faults, everything comes to its end |
final class InvariantMonitor {
    private let plan: SimulationPlan
    private(set) var violation: Violation?
    /// Notifications at which workers die, and those that the registry loses.
    var poison: [Identifier] = []
    var orphans: [Identifier] = []
    /// When the database's clock was set, and by how much, both in microseconds.
    var clockSteps: [(at: Int64, by: Int64)] = []
    /// When each worker last asked what made it notice that the database's clock was set.
    var noticedAt: [Identifier: Int64] = [:]
    /// When nobody reached the database.
    var outages: [(from: Int64, until: Int64)] = []
    /// Of the recovery that is carried out: since when its worker was connected when it was sent, and when that was.
    var recovery: (connectedAt: Int64, askedAt: Int64) = (0, 0)
    /// How often each passage was come through, by its number.
    private(set) var passages = [Int](repeating: 0, count: Passage.allCases.count)
    /// Flushes that came too late.
    var fenced = 0
    /// Deaths at each step of a worker, by its number.
    var steps = [Int](repeating: 0, count: WorkerStep.allCases.count)
    var duplicates = 0

    private var places: [Int] = []
    /// When somebody last began to look through all devices of a dispatch.
    private var lastLook: [Int: Int64] = [:]
    private(set) var claimedAt: [Identifier: Int64] = [:]
    /// When each worker was last heard of by the registry.
    private(set) var heardAt: [Identifier: Int64] = [:]
    private var early: Set<Target> = []
    private var over: Set<Target> = []
    private(set) var leases: [LeaseRow] = []
    private var ledgerAtClaim: [Identifier: Int] = [:]
    private var changedAt: [Int64: Int64] = [:]
    private var fallen: Set<Target> = []
    private var requested: Set<Target> = []
    private var tokens: [String?] = []
    private var allowed: [Target: ContinuousClock.Instant] = [:]
    private var knownEnds = 0

    /// One target of one lease.
    struct Target: Hashable {
        let batch: Identifier
        let notification: Identifier
        let device: Int64
    }

    init(_ plan: SimulationPlan) {
        self.plan = plan
    }

    /// How long a lease lasts, in microseconds.
    var leaseLength: Int64 { plan.settings.lease.wholeMicroseconds }

    func found(_ rule: String, _ detail: @autoclosure () -> String) {
        if violation == nil { violation = Violation(rule: rule, detail: detail()) }
    }

    func passed(_ passage: Passage, _ times: Int = 1) {
        passages[passage.rawValue] += times
    }

    /// A number for a notification: the order in which it was enqueued.
    func number(_ notification: Identifier, _ store: SimulatedStore) -> Int {
        store.place(of: notification) ?? -1
    }

    func name(_ notification: Identifier, _ store: SimulatedStore) -> String {
        store.notification(notification)?.key ?? "\(notification)"
    }

    /// A device was registered, revoked, muted or heard again.
    func changed(_ device: Int64, at clock: Int64) {
        changedAt[device] = clock
    }

    // MARK: Places

    /// The store was changed by a statement.
    func didChange(_ simulation: Simulation, by statement: Statement, of worker: SimulatedWorker? = nil) {
        let store = simulation.store
        switch statement {
        case .register:
            if let worker { heardAt[worker.owner] = simulation.clock }
            return
        case .effects: checkTokens(simulation)
        case .claim: noteClaim(simulation)
        case .recover: checkRecovery(simulation, by: worker)
        case .resolve:
            let facts: [SettlementReason] = [.superseded, .seen, .erased]
            passed(
                .endedUnclaimed,
                store.settlements[knownEnds...].count { end in facts.contains { $0.rawValue == end.reason } })
        case .settle, .adopt, .enqueue, .retryHeld: break
        default: return
        }
        defer {
            tokens = store.devices.map(\.token)
            leases = store.leases
            knownEnds = store.settlements.count
        }
        var present = [Int](repeating: 0, count: store.notifications.count * 4)
        func count(_ notification: Identifier, _ route: RouteNumber) {
            guard let place = store.place(of: notification) else { return }
            present[place * 4 + Int(route)] += 1
            if present[place * 4 + Int(route)] > 1 {
                found("two_places", "\(name(notification, store)) on route \(route) after \(statement.name)")
            }
        }
        for row in store.queue {
            count(row.notification, row.route)
            if !row.prior, store.ledger(of: row.notification).contains(where: { $0.route == row.route }) {
                found("history_forgotten", "\(name(row.notification, store)) after \(statement.name)")
            }
        }
        for lease in store.leases {
            for (index, row) in lease.rows.enumerated() where lease.isOpen[index] {
                count(row.notification, row.route)
            }
        }
        for key in places.indices where places[key] > 0 && present[key] == 0 {
            checkEnd(of: store.notifications[key / 4], route: RouteNumber(key % 4), statement, simulation, present)
        }
        places = present
    }

    private func noteClaim(_ simulation: Simulation) {
        guard let lease = simulation.store.leases.last, claimedAt[lease.batch] == nil else { return }
        claimedAt[lease.batch] = simulation.clock
        ledgerAtClaim[lease.batch] = simulation.store.ledger.count
        let crashes = lease.rows.map(\.crashes).max() ?? 0
        if crashes >= 2 && lease.rows.count > 1 || crashes == 1 && lease.rows.count > 32 {
            found("crash_class", "\(lease.rows.count) rows with \(crashes) crashes in one lease")
        }
        for target in lease.targets {
            let identifier = lease.rows[target.row].notification
            let key = Target(batch: lease.batch, notification: identifier, device: target.device)
            let store = simulation.store
            if store.ledger(of: identifier).contains(where: {
                $0.device == target.device && $0.route == lease.route && $0.retryAt.map { $0 > store.now } ?? false
            }) {
                early.insert(key)
            }
            if let row = store.notification(identifier),
                store.isClosed(identifier) || store.fact(against: row) != nil || row.expiresAt <= store.now
            {
                over.insert(key)
            }
        }
        for row in lease.rows {
            if let found = simulation.store.notification(row.notification), !simulation.store.isClosed(row.notification)
            {
                noteFact(simulation.store.fact(against: found), .supersededAtClaim, .seenAtClaim, .erasedAtClaim)
            }
            // Behind the cursor of a second look nobody is looked for again (docs/decisions/0027).
            if row.cursor.isSecondLook && row.cursor != .startAgain { continue }
            lastLook[number(row.notification, simulation.store) * 4 + Int(row.route)] = simulation.clock
        }
    }

    private func noteFact(
        _ fact: SettlementReason?, _ superseded: Passage, _ seen: Passage, _ erased: Passage
    ) {
        switch fact {
        case .superseded: passed(superseded)
        case .seen: passed(seen)
        case .erased: passed(erased)
        default: break
        }
    }

    private func checkEnd(
        of row: NotificationRow, route: RouteNumber, _ statement: Statement, _ simulation: Simulation, _ present: [Int]
    ) {
        let store = simulation.store
        guard row.isVisible else { return }
        let ends = store.settlements.filter { $0.notification == row.identifier }
        if ends.contains(where: { $0.route == nil || $0.route == route }) { return }
        let place = number(row.identifier, store)
        if route == 0 {
            guard (1...3).contains(where: { present[place * 4 + $0] > 0 }) else {
                return found("lost", "\(row.key) on its way out of the wait for a device, by \(statement.name)")
            }
            return
        }
        let history = store.ledger(of: row.identifier)
        guard history.contains(where: { $0.route == route && $0.isFinal }) else {
            return found("lost", "\(row.key) on route \(route), by \(statement.name)")
        }
        let lookedAt = lastLook[place * 4 + Int(route)] ?? 0
        for device in store.liveDevices(of: row, route: route)
        where !device.mutes && changedAt[device.number, default: 0] < lookedAt
            && !history.contains(where: { $0.device == device.number && $0.isFinal })
        {
            found("left_out", "\(row.key) has ended without device \(device.number), by \(statement.name)")
        }
    }

    private func checkTokens(_ simulation: Simulation) {
        for (index, device) in simulation.store.devices.enumerated() where index < tokens.count {
            guard let before = tokens[index], device.token == nil else { continue }
            if device.disabledReason == "repeated_failures" { continue }
            let isDead = simulation.provider.log.contains { entry in
                entry.request.token == before && entry.verdict == .refused(.unregistered)
                    && device.registeredAt.map { (entry.deadSince ?? entry.request.madeAt) >= $0 } ?? false
            }
            if !isDead { found("token_wiped", "device \(device.number)") }
            changedAt[device.number] = simulation.clock
        }
    }

    // MARK: Requests

    /// A worker hands a request to its transport; its lease was last checked so that it `holds` so long.
    func made(
        _ request: Request, by worker: SimulatedWorker, holds: ContinuousClock.Instant?, _ simulation: Simulation
    ) {
        let store = simulation.store
        let target = Target(batch: request.batch, notification: request.notification, device: request.device)
        func broke(_ rule: String) { found(rule, simulation.describe(request)) }
        guard let claim = store.claims[request.batch],
            claim.contains(where: { $0.notification == request.notification && $0.device == request.device })
        else { return broke("no_claim") }
        if !requested.insert(target).inserted { broke("sent_twice") }
        if fallen.contains(target) { broke("fell_out") }
        if early.contains(target) { broke("too_early") }
        if over.contains(target) { broke("over") }
        if store.notification(request.notification)?.kind == SimulatedStore.hookedKind, !worker.knownHooks.isEmpty {
            if allowed[target].map({ worker.now > $0 }) ?? true { broke("unasked") }
        } else if let holds, worker.now > holds {
            broke("stale_check")
        }
        let known = ledgerAtClaim[request.batch] ?? 0
        if store.ledger.prefix(known).contains(where: {
            $0.notification == request.notification && $0.device == request.device && $0.isFinal
        }) {
            broke("sent_again")
        }
        let since = claimedAt[request.batch] ?? 0
        if !clockSteps.contains(where: { $0.at >= since }) {
            let lease = store.leases.first { $0.batch == request.batch }
            let ends = simulation.databaseTime + plan.settings.requestTimeout - Self.drift
            if let lease { if ends > lease.until { broke("near_end") } } else { broke("lease_gone") }
        }
        let steps = clockSteps.filter { $0.at >= worker.heardAt - 10_000_000 }.reduce(0) { $0 + abs($1.by) }
        if simulation.databaseTime > request.expiresAt + Self.lateness + .microseconds(steps) { broke("too_late") }
        if let row = store.notification(request.notification), request.collapseKey != row.collapseKey {
            broke("other_key")
        }
    }

    /// What the clock of a worker goes wrong in the longest lease, and more.
    private static let drift = Duration.milliseconds(20)

    /// How much later than its deadline a request may be made: what the worker's idea of the database's clock lags.
    private static let lateness = Duration.milliseconds(100)

    /// A request arrived.
    func received(_ request: Request, _ simulation: Simulation) {
        if simulation.store.claims[request.batch] == nil { found("no_claim", simulation.describe(request)) }
    }

    /// A re-check was carried out and its answer heard.
    func checked(_ batch: Identifier, _ asked: [RecheckTarget], _ reasons: [SettlementReason?]) {
        for (target, reason) in zip(asked, reasons) where reason != nil {
            noteFact(reason, .supersededAtCheck, .seenAtCheck, .erasedAtCheck)
            fallen.insert(Target(batch: batch, notification: target.notification, device: target.device))
        }
    }

    /// Effects on devices are carried out: each has an answer on the ledger that came in time.
    func applied(_ effects: [DeviceEffect], _ store: SimulatedStore) {
        for effect in effects {
            let answers: [OutcomeKind] =
                switch effect.change {
                case .succeeded: [.delivered]
                case .failed: [.retry]
                case .tokenInvalid: [.unregistered]
                }
            let isSaid = store.ledger(of: effect.notification).contains {
                $0.device == effect.device && !$0.isLate && answers.contains($0.outcome)
            }
            if !isSaid { found("late_effect", "\(effect.change) on device \(effect.device)") }
        }
    }

    /// A call of hooks was answered about targets of a lease: which of their notifications it really let through, and
    /// until when that counts.
    func hooksAnswered(
        _ batch: Identifier, _ targets: [(notification: Identifier, device: Int64)],
        allowed notifications: Set<Identifier>,
        until: ContinuousClock.Instant
    ) {
        for (notification, device) in targets {
            let target = Target(batch: batch, notification: notification, device: device)
            allowed[target] = notifications.contains(notification) ? until : nil
        }
    }
}
