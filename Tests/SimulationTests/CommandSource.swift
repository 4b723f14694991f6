import OutboxCore

@testable import Simulation

/// Draws steps that make sense where the store stands, by looking at a simulated one.
struct CommandSource {
    private var random: SplitMix
    private let subject = SimulatedSubject()
    private var keys = 0
    private var tokens = 0
    private var flushed: Set<Int> = []

    init(seed: UInt64) {
        random = SplitMix(seed: seed)
    }

    /// So many steps, beginning with a few devices.
    mutating func commands(_ count: Int) -> [StoreCommand] {
        var commands: [StoreCommand] = []
        while commands.count < count {
            for command in draw(commands.count) {
                _ = subject.perform(command)
                commands.append(command)
            }
        }
        return commands
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
    private mutating func chance(_ share: Double) -> Bool { random.fraction() < share }
    private mutating func principal() -> (name: String, tenant: Int) {
        let person = number(0...2)
        return ("person-\(person)", person == 2 ? 2 : 1)
    }

    private mutating func draw(_ step: Int) -> [StoreCommand] {
        switch step < 5 ? number(0...1) : number(0...23) {
        case 0: return [registration()]
        case 1, 2, 3: return [enqueue()]
        case 4, 5, 6, 7: return [claim()]
        case 8, 9, 10: return settle()
        case 11: return [.repeatSettle(worker: number(0...2))]
        case 12: return [.advance(minutes: number(1...4))]
        case 13: return [recovery()]
        case 14:
            return [
                chance(0.5)
                    ? .renew(worker: number(0...2), batches: someBatches(), minutes: number(1...4))
                    : .adopt(worker: number(0...2), batches: someBatches())
            ]
        case 15: return [.recheck(worker: number(0...2), batch: someBatches()[0])]
        case 16: return effects()
        case 17: return [change()]
        case 18: return [.resolve(worker: number(0...2))]
        case 19: return [end()]
        case 20: return hooks()
        case 21: return [chance(0.7) ? .beat(worker: number(0...2)) : .signOff(worker: number(0...2))]
        case 22: return [.requeue(key: someKey(), minutes: chance(0.1) ? -1 : number(1...9))]
        default:
            return [
                chance(0.5)
                    ? .waiting(worker: number(0...2))
                    : .retryHeld(worker: number(0...2), route: RouteNumber(number(1...2)))
            ]
        }
    }

    private mutating func registration() -> StoreCommand {
        let (name, tenant) = principal()
        if chance(0.7) { tokens += 1 }
        return .register(
            client: "client-\(number(0...3))", principal: name, tenant: tenant, route: RouteNumber(number(1...2)),
            token: chance(0.1) ? number(0...tokens) : tokens)
    }

    private mutating func enqueue() -> StoreCommand {
        let (name, tenant) = principal()
        keys += chance(0.95) ? 1 : 0
        var draft = SimulatedStore.Draft(key: "n\(keys)-\(tenant)", principal: name)
        draft.tenant = Int32(tenant)
        draft.subject = chance(0.4) ? "subject-\(number(0...1))" : nil
        draft.thread = chance(0.4) ? "thread-\(number(0...1))" : nil
        draft.payload = chance(0.5) ? #"{"word": "hello"}"# : "{}"
        draft.kind = KindNumber(number(1...3))
        draft.urgency = chance(0.3) ? 1 : 0
        draft.life = .seconds(60 * (chance(0.05) ? -1 : number(2...30)))
        draft.delay = chance(0.1) ? .seconds(60 * number(1...3)) : .zero
        let own = subject.store.devices.filter { $0.principal == name }.map(\.number)
        if let device = own.randomElement(using: &random), chance(0.2) {
            if chance(0.5) { draft.onlyDevice = device } else { draft.exceptDevice = device }
        }
        return .enqueue(draft)
    }

    private mutating func claim() -> StoreCommand {
        let draw = number(0...9)
        let crashClass: CrashClass = draw < 6 ? .clean : draw < 8 ? .once : .suspect
        return .claim(
            worker: number(0...2), route: RouteNumber(number(1...2)), crashClass, rows: number(1...4),
            targets: number(1...3), minutes: number(1...4))
    }

    private mutating func someBatches() -> [Int] {
        let known = subject.batches.keys.sorted()
        guard !known.isEmpty else { return [1] }
        return (0..<number(1...2)).map { _ in known[number(max(0, known.count - 4)...known.count - 1)] }
    }

    private mutating func settle() -> [StoreCommand] {
        let number = someBatches()[0]
        guard let batch = subject.batches[number] else { return [] }
        // As the worker does: a target is settled once in a lease, by the lease's owner or as good as by it.
        guard flushed.insert(number).inserted else { return [.repeatSettle(worker: self.number(0...2))] }
        let owner = subject.store.leases.first { $0.batch == batch.identifier }.map { Int($0.owner.low) }
        var fates: [StoreCommand.Fate] = []
        for row in batch.dispatches.sorted(by: { $0.notification < $1.notification }) where chance(0.8) {
            fates.append(fate(of: row, in: batch))
        }
        return [.settle(worker: owner ?? self.number(0...2), batch: number, fates)]
    }

    private mutating func fate(of row: ClaimedDispatch, in batch: ClaimedBatch) -> StoreCommand.Fate {
        let key = subject.store.notification(row.notification)?.key ?? "?"
        var fate = StoreCommand.Fate(key: key)
        fate.leaves = chance(0.9)
        fate.clears = chance(0.5)
        fate.attempt = row.attempt
        switch number(0...9) {
        case 0...3: fate.outcome = .delivered
        case 4, 5:
            fate.outcome = [.retry, .unknown, .misconfigured][number(0...2)]
            (fate.isFinal, fate.wait) = (false, number(1...4))
            fate.back = fate.wait
        case 6: (fate.back, fate.attempt) = (number(0...2), row.attempt - 1)
        case 7:
            fate.outcome = .delivered
            fate.back = 0
            fate.cursor = PageCursor(behind: row.pageEnd ?? 0, isSecondLook: chance(0.5))
        case 8: (fate.outcome, fate.end) = (.skipped, .expired)
        default: (fate.end, fate.isWhole) = (chance(0.5) ? .superseded : .failed, chance(0.5))
        }
        // Nothing leaves without an end, as nothing does in the worker.
        if fate.outcome == .delivered, fate.back == nil, row.targets.isEmpty { fate.end = .dispatched }
        return fate
    }

    private mutating func effects() -> [StoreCommand] {
        let batch = someBatches()[0]
        let change: DeviceEffect.Change = [.succeeded, .failed, .tokenInvalid][number(0...2)]
        let effects = StoreCommand.effects(
            worker: number(0...2), batch: batch, change, age: number(0...3), maxFailures: number(0...2))
        guard !subject.store.devices.isEmpty, chance(0.3) else { return [effects] }
        return [.hold(device: Int64(number(1...subject.store.devices.count))), effects, .letGo]
    }

    private mutating func recovery() -> StoreCommand {
        .recover(
            worker: number(0...2), known: chance(0.3) ? number(1...3) : 0,
            connected: chance(0.5) ? 999 : number(-1...4), maxCrashes: number(2...4))
    }

    private mutating func someKey() -> String {
        subject.store.notifications.randomElement(using: &random)?.key ?? "none"
    }

    /// Facts against notifications.
    private mutating func end() -> StoreCommand {
        let (name, tenant) = principal()
        return chance(0.5)
            ? .see(tenant: tenant, principal: name, subject: "subject-\(number(0...1))")
            : .erase(tenant: number(1...2), thread: "thread-\(number(0...1))")
    }

    /// A hook that is set or taken away, an app that knows something or fails, and a question.
    private mutating func hooks() -> [StoreCommand] {
        let purpose: HookPurpose = chance(0.5) ? .stale : .access
        let app = StoreCommand.app(
            over: chance(0.5) ? "subject-\(number(0...1))" : nil, barred: chance(0.5) ? "person-\(number(0...2))" : nil,
            raises: chance(0.2) ? purpose : nil, mixesUp: chance(0.2) ? purpose : nil)
        return [.setHook(purpose, chance(0.8)), app, .askHooks(worker: number(0...2), batch: someBatches()[0])]
    }

    private mutating func change() -> StoreCommand {
        let devices = subject.store.devices.count
        switch devices == 0 ? number(0...1) : number(0...3) {
        case 0: return .supersede(tenant: number(1...2), subject: "subject-\(number(0...1))")
        case 1: return .cancel(key: someKey())
        case 2: return .revoke(device: Int64(number(1...devices)))
        default: return .mute(device: Int64(number(1...devices)), chance(0.6))
        }
    }
}
