import OutboxCore

@testable import Simulation

/// The simulated store as a conformance run sees it.
final class SimulatedSubject: StoreSubject {
    private(set) var store: SimulatedStore
    private(set) var batches: [Int: ClaimedBatch] = [:]
    private var keys: [Identifier: String] = [:]
    private var flushes: [Int: Settlement] = [:]
    private var maker = FlushMaker()
    private var sweepers: Set<Int> = []
    private var claims = 0

    init(defect: StoreDefect? = nil) {
        store = SimulatedStore(now: Timestamp(microseconds: 1_700_000_000_000_000), seed: 5, defect: defect)
        store.waitForDevice = .seconds(180)
    }

    static func owner(_ worker: Int) -> Identifier { Identifier(high: 0xA, low: UInt64(worker)) }
    static func batch(_ number: Int) -> Identifier { Identifier(high: 0xB, low: UInt64(number)) }
    static func token(_ number: Int) -> String { "feedbeef\(10_000_000 + number)" }

    private func minute(_ instant: Timestamp) -> Int { Self.minutes(from: store.now, to: instant) }

    /// Whole minutes, to the nearest: what differs between stores is less than half of one.
    static func minutes(from now: Timestamp, to instant: Timestamp) -> Int {
        Int(((Double((instant - now).wholeMicroseconds)) / 60_000_000).rounded())
    }

    func perform(_ command: StoreCommand) -> [String] {
        store.now = store.now + .milliseconds(1)
        return produce(command) ?? work(command)
    }

    /// What producers, back ends and time do; nil for a worker's step.
    private func produce(_ command: StoreCommand) -> [String]? {
        switch command {
        case .register(let client, let principal, let tenant, let route, let token):
            store.register(
                client: client, principal: principal, tenant: Int32(tenant), route: route, token: Self.token(token))
        case .revoke(let device): store.revoke(device)
        case .mute(let device, let mutes): store.mute(device, mutes)
        case .hold(let device): store.lockedDevices = [device]
        case .holdRows(let key):
            store.lockedNotifications = store.notifications.filter { $0.key == key }.map(\.identifier)
        case .letGo: (store.lockedDevices, store.lockedNotifications) = ([], [])
        case .enqueue(let draft):
            guard let made = store.enqueue(draft) else { return ["none"] }
            keys[made] = draft.key
            return [draft.key]
        case .supersede(let tenant, let subject): store.supersede(tenant: Int32(tenant), subject: subject)
        case .cancel(let key):
            guard let row = store.notifications.first(where: { $0.key == key }) else { return [] }
            return ["\(store.cancel(row.identifier))"]
        case .requeue(let key, let minutes):
            guard let row = store.notifications.first(where: { $0.key == key }) else { return [] }
            guard let made = store.requeue(row.identifier, life: .seconds(minutes * 60)) else { return ["refused"] }
            keys[made] = store.notification(made)?.key
            return [keys[made] ?? "?"]
        case .see(let tenant, let principal, let subject):
            return store.see(tenant: Int32(tenant), principal: principal, subject: subject) ? [] : ["refused"]
        case .erase(let tenant, let thread): store.erase(tenant: Int32(tenant), thread: thread)
        case .setHook(let purpose, let isSet): store.setHook(purpose, isSet)
        case .app(let over, let barred, let raises, let mixesUp):
            store.app = HookedApp(
                overSubjects: Set([over].compactMap { $0 }), barred: Set([barred].compactMap { $0 }), raises: raises,
                mixesUp: mixesUp)
        case .advance(let minutes): store.now = store.now + .seconds(minutes * 60)
        default: return nil
        }
        return []
    }

    private func work(_ command: StoreCommand) -> [String] {
        switch command {
        case .claim(let worker, let route, let crashClass, let rows, let targets, let minutes):
            claims += 1
            let request = Self.request(claims, route, crashClass, rows, targets, minutes)
            let batch = store.claim(request, owner: Self.owner(worker))
            if let batch { batches[claims] = batch }
            return BatchText.lines(batch, keys: keys, minute: minute)
        case .settle(let worker, let number, let fates):
            guard let batch = batches[number] else { return ["no batch"] }
            let flush = maker.flush(batch, fates, keys: keys)
            flushes[worker] = flush
            return BatchText.line(store.settle(flush, owner: Self.owner(worker)))
        case .repeatSettle(let worker):
            guard let flush = flushes[worker] else { return ["no flush"] }
            return BatchText.line(store.settle(flush, owner: Self.owner(worker)))
        case .renew(let worker, let numbers, let minutes):
            let renewed = store.renew(
                numbers.map(Self.batch), owner: Self.owner(worker), lease: .seconds(minutes * 60))
            return renewed.map { "\($0.low)" }.sorted()
        case .adopt(let worker, let numbers):
            return ["\(store.adopt(numbers.map(Self.batch), owner: Self.owner(worker)))"]
        case .recover(_, let known, let connected, let maxCrashes):
            return BatchText.line(
                store.recover(
                    knownAt: store.now + .seconds(-known * 60), healthySince: store.now + .seconds(-connected * 60),
                    limit: 100, maxCrashes: maxCrashes))
        case .beat(let worker): _ = store.register(Self.owner(worker))
        case .signOff(let worker): store.unregister(Self.owner(worker))
        case .askHooks(_, let number):
            guard let asked = batches[number].map(Self.hooked), !asked.isEmpty, !store.hooks.isEmpty else { return [] }
            return Self.verdicts(
                Result { () throws(HookFault) in try store.ask(store.hooks, about: asked) }, asked, keys)
        case .recheck(let worker, let number):
            guard let batch = batches[number] else { return ["no batch"] }
            let reasons = store.recheck(
                Self.targets(of: batch), batch: batch.identifier, owner: Self.owner(worker), route: batch.route)
            return reasons.map { Self.lines($0, of: batch, keys: keys) } ?? ["refused"]
        case .effects(_, let number, let change, let age, let maxFailures):
            guard let batch = batches[number] else { return ["no batch"] }
            let effects = Self.effects(of: batch, change, asOf: store.now + .seconds(-age * 60))
            return store.apply(effects, maxFailures: maxFailures).map { "\($0)" }
        case .resolve(let worker):
            let resolved = store.resolveUnrouted(limit: 100).resolved
            return ["\(resolved + (sweepers.insert(worker).inserted ? store.sweep() : 0))"]
        case .retryHeld(_, let route): return ["\(store.retryHeld(on: [route]))"]
        case .waiting: return BatchText.lines(store.waitingWork(on: [1, 2]), minute: minute)
        default: break
        }
        return []
    }

    // MARK: What both stores are asked

    static func request(
        _ number: Int, _ route: RouteNumber, _ crashClass: CrashClass, _ rows: Int, _ targets: Int, _ minutes: Int
    ) -> ClaimRequest {
        let shares = [(0, 1), (1, 1), (0, 2), (1, 2)].map { Share(urgency: Int16($0.0), tenant: Int32($0.1)) }
        let taken = crashClass == .suspect ? [shares[number % 4]] : shares
        return ClaimRequest(
            batch: batch(number), route: route, crashClass: crashClass,
            credits: taken.map { ShareCredit(share: $0, rows: crashClass == .suspect ? 1 : rows, mark: .start) },
            lease: .seconds(minutes * 60), targetsPerRow: targets)
    }

    static func targets(of batch: ClaimedBatch) -> [RecheckTarget] {
        batch.dispatches.flatMap { row in
            batch.targets[row.targets].map {
                RecheckTarget(notification: row.notification, device: $0.device, tokenSequence: $0.tokenSequence)
            }
        }
    }

    static func lines(
        _ reasons: [SettlementReason?], of batch: ClaimedBatch, keys: [Identifier: String]
    ) -> [String] {
        zip(targets(of: batch), reasons).map {
            "\(keys[$0.notification] ?? "?") \($0.device) \($1?.rawValue ?? "stands")"
        }.sorted()
    }

    /// The notifications of a batch whose kind has hooks.
    static func hooked(_ batch: ClaimedBatch) -> [Identifier] {
        batch.dispatches.filter { $0.kind == SimulatedStore.hookedKind }.map(\.notification).sorted()
    }

    /// What the answers of hooks come to for each notification, or what they failed by.
    static func verdicts(
        _ replies: Result<[HookReply], HookFault>, _ asked: [Identifier], _ keys: [Identifier: String]
    ) -> [String] {
        do throws(HookFault) {
            let verdicts = try HookVerdicts(try replies.get(), asked: asked)
            return asked.map { "\(keys[$0] ?? "?") \(verdicts.reason(for: $0)?.rawValue ?? "stands")" }.sorted()
        } catch {
            return [error.text]
        }
    }

    static func effects(of batch: ClaimedBatch, _ change: DeviceEffect.Change, asOf: Timestamp) -> [DeviceEffect] {
        let ordered = batch.dispatches.sorted { $0.notification < $1.notification }
        return ordered.flatMap { row in
            batch.targets[row.targets].map {
                DeviceEffect(
                    device: $0.device, tokenSequence: $0.tokenSequence, change: change, asOf: asOf,
                    notification: row.notification)
            }
        }
    }

    // MARK: Contents

    func contents() -> [String] {
        func key(_ notification: Identifier) -> String { store.notification(notification)?.key ?? "?" }
        var lines = store.notifications.map {
            "note \($0.key) kind \($0.kind) \($0.payload) \($0.thread ?? "-")"
        }
        lines += store.receipts.map { "seen \($0.tenant) \($0.principal) \($0.subject)" }
        lines += store.workers.map {
            "worker \($0.owner.low) heard \(minute($0.heartbeatAt))"
                + " stopped \($0.stoppedAt.map { "\(minute($0))" } ?? "-")"
        }
        for row in store.queue {
            lines.append(
                "queue \(key(row.notification))/\(row.route) due \(minute(row.dueAt)) attempt \(row.attempt)"
                    + " crashes \(row.crashes) prior \(row.prior) after \(row.cursor.rawValue) share"
                    + " \(row.urgency).\(row.tenant)")
        }
        for lease in store.leases {
            for (index, row) in lease.rows.enumerated() where lease.isOpen[index] {
                let devices = lease.targets.filter { $0.row == index }.map { "\($0.device)" }.joined(separator: ",")
                lines.append(
                    "lease \(lease.batch.low) of \(lease.owner.low) \(key(row.notification))/\(lease.route)"
                        + " until \(minute(lease.until)) attempt \(row.attempt) crashes \(row.crashes)"
                        + " after \(row.cursor.rawValue) to \(devices)")
            }
        }
        for row in store.ledger {
            let retry = row.retryAt.map { "\(minute($0))" } ?? "-"
            lines.append(
                "ledger \(key(row.notification)) device \(row.device) batch \(row.batch.low) \(row.outcome.name)"
                    + " final \(row.isFinal) late \(row.isLate) retry \(retry) attempt \(row.attempt)"
                    + " status \(row.status) \(row.reason) token \(row.tokenSequence.map { "\($0)" } ?? "-")")
        }
        for row in store.settlements {
            let route = row.route.map { "\($0)" } ?? "-"
            lines.append("end \(key(row.notification)) route \(route) \(row.status) \(row.reason)")
        }
        for device in store.devices {
            let due = device.successDueAt == .distantPast ? "at once" : "\(minute(device.successDueAt))"
            let moved = device.reroutedAt == .distantPast ? "-" : "\(minute(device.reroutedAt))"
            lines.append(
                "device \(device.number) route \(device.route) \(device.status) \(device.disabledReason ?? "-")"
                    + " failures \(device.failures) token \(device.tokenSequence) \(device.token ?? "-") due \(due)"
                    + " moved \(moved)")
        }
        lines += store.events.map { "event \($0)" }
        return lines.sorted()
    }
}
