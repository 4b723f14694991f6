import OutboxCore

/// What a seed decides before a run begins: how many workers, their settings, what producers do, and how often what
/// goes wrong.
struct SimulationPlan {
    let seed: UInt64
    let workers: Int
    let settings: DispatchSettings
    let poll: Duration
    let pause: Duration
    let maxCrashes: Int
    let maxFailures: Int
    /// Requests that a lane has in flight at most.
    let capacity: Int
    /// How long the provider takes for an answer, in microseconds.
    let answerWay: ClosedRange<Int>
    /// Whether each worker serves one route instead of both.
    let isDivided: Bool
    /// How far a worker's monotonic clock goes wrong, in millionths.
    let drifts: [Int]
    /// How long faults may strike, in microseconds.
    let safetyLength: Int64
    let rates: [Double]
    let producers: [ProducerEvent]
    let devices: [DeviceSetup]
    let waitForDevice: Duration
    /// Hooks that are set from the beginning.
    let hooks: [HookPurpose]

    /// A device that is there at the beginning.
    struct DeviceSetup {
        let client: String
        let principal: String
        let tenant: Int32
        let route: RouteNumber
    }

    /// What producers, back ends and people do.
    struct ProducerEvent {
        enum Action {
            case enqueue(SimulatedStore.Draft)
            case supersede(tenant: Int32, subject: String)
            case cancel(key: Int)
            case register(DeviceSetup, isNewToken: Bool)
            case revoke(device: Int)
            case mute(device: Int, Bool)
            case uninstall(device: Int)
            case erase(tenant: Int32, thread: String)
            case see(tenant: Int32, principal: String, subject: String)
            case requeue(key: Int)
            case setHook(HookPurpose, Bool)
            /// The app's own knowledge, from which its hooks answer.
            case overByApp(subject: String)
            case bar(principal: String, Bool)
        }

        /// Microseconds from the beginning.
        let at: Int64
        let action: Action
    }

    init(seed: UInt64) {
        self.seed = seed
        var random = SplitMix(seed: seed ^ 0x5EED_0F_5EED)
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        func chance(_ share: Double) -> Bool { random.fraction() < share }
        workers = number(1...4)
        var settings = DispatchSettings()
        settings.lease = .seconds(number(5...40))
        settings.requestTimeout = .milliseconds(number(500...Int(settings.lease.wholeMicroseconds / 2000)))
        settings.batch = chance(0.3) ? number(1...3) : number(4...64)
        // Deadlines that are near, many devices and few requests at a time: they pass while targets wait on lease.
        let isUrgent = chance(0.15)
        settings.recheckAfter = .milliseconds(number(isUrgent ? 500...1500 : 50...1500))
        settings.targetsPerClaim = chance(0.3) ? number(1...2) : number(3...20)
        settings.settleRows = chance(0.3) ? 1 : number(2...100)
        settings.settleDelay = .milliseconds(number(1...50))
        settings.retry = .list([.seconds(2), .seconds(5), .seconds(10), .seconds(20)])
        settings.retryBudget = chance(0.3) ? 10 : 100
        settings.unsettledLimit = chance(0.2) ? number(1...10) : 20_000
        self.settings = settings
        poll = .seconds(number(1...5))
        pause = .seconds(number(3...15))
        maxCrashes = number(2...5)
        maxFailures = chance(0.3) ? number(2...4) : 0
        capacity = isUrgent || chance(0.3) ? number(1...2) : number(3...40)
        let slowest = Int(settings.requestTimeout.wholeMicroseconds) * 3 / 4
        let isSlow = !isUrgent && chance(0.35)
        answerWay = isSlow ? min(50_000, slowest)...slowest : 1000...min(isUrgent ? 400_000 : 40_000, slowest)
        isDivided = workers > 1 && chance(0.2)
        drifts = (0..<workers).map { _ in number(-200...200) }
        safetyLength = Int64(number(15...60)) * 1_000_000
        waitForDevice = .seconds(number(0...20))
        let isCalm = chance(0.05)
        rates = FaultKind.allCases.map { kind in
            let rate = random.fraction() < 0.4 ? kind.worstRate * random.fraction() : 0
            return isCalm ? 0 : rate
        }
        hooks = chance(0.5) ? [] : HookPurpose.allCases.filter { _ in chance(0.6) }
        let people = number(2...6)
        let tenants = Int32(number(1...3))
        devices = Self.drawDevices(people: people, tenants: tenants, manyFor: isUrgent ? 0.6 : 0.15, &random)
        producers = Self.drawProducers(
            people: people, tenants: tenants, devices: devices, until: safetyLength, isCalm: isCalm, isUrgent: isUrgent,
            &random)
    }

    static func principal(_ number: Int) -> String { "person-\(number)" }

    private static func drawDevices(
        people: Int, tenants: Int32, manyFor share: Double, _ random: inout SplitMix
    ) -> [DeviceSetup] {
        var devices: [DeviceSetup] = []
        for person in 0..<people {
            let isMany = random.fraction() < share
            for device in 0..<Int.random(in: isMany ? 5...12 : 0...3, using: &random) {
                devices.append(
                    DeviceSetup(
                        client: "device-\(device)", principal: principal(person),
                        tenant: Int32(person) % tenants + 1, route: RouteNumber.random(in: 1...2, using: &random)))
            }
        }
        return devices
    }

    private static func drawProducers(
        people: Int, tenants: Int32, devices: [DeviceSetup], until end: Int64, isCalm: Bool, isUrgent: Bool,
        _ random: inout SplitMix
    ) -> [ProducerEvent] {
        var events: [ProducerEvent] = []
        let rows = Int.random(in: 5...60, using: &random)
        for row in 0..<rows {
            let person = Int.random(in: 0..<people, using: &random)
            var draft = SimulatedStore.Draft(key: "n\(row)", principal: principal(person))
            draft.tenant = Int32(person) % tenants + 1
            draft.urgency = random.fraction() < 0.3 ? 1 : 0
            draft.subject = random.fraction() < 0.5 ? "subject-\(Int.random(in: 0...2, using: &random))" : nil
            draft.thread = random.fraction() < 0.3 ? "thread-\(Int.random(in: 0...2, using: &random))" : nil
            draft.kind = random.fraction() < 0.4 ? 1 : KindNumber.random(in: 2...3, using: &random)
            let isShort = random.fraction() < (isUrgent ? 0.8 : 0.2)
            let life = isUrgent ? 300...8000 : 1000...15_000
            draft.life = .milliseconds(Int.random(in: isShort ? life : 30_000...600_000, using: &random))
            draft.delay = random.fraction() < 0.15 ? .seconds(Int.random(in: 1...10, using: &random)) : .zero
            if !devices.isEmpty, random.fraction() < 0.1 {
                draft.onlyDevice = Int64.random(in: 1...Int64(devices.count), using: &random)
            } else if !devices.isEmpty, random.fraction() < 0.1 {
                draft.exceptDevice = Int64.random(in: 1...Int64(devices.count), using: &random)
            }
            let at = Int64.random(in: 0..<end, using: &random)
            events.append(ProducerEvent(at: random.fraction() < 0.4 ? at / 20 : at, action: .enqueue(draft)))
        }
        for _ in 0..<(isCalm ? 0 : Int.random(in: 0...rows / 2, using: &random)) {
            let at = Int64.random(in: 0..<end, using: &random)
            events.append(
                ProducerEvent(
                    at: at,
                    action: random.fraction() < 0.35
                        ? drawEnd(rows: rows, people: people, tenants: tenants, &random)
                        : drawAction(rows: rows, tenants: tenants, devices: devices, &random)))
        }
        return events.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }

    /// Facts against notifications, operators, and the app whose hooks are asked.
    private static func drawEnd(
        rows: Int, people: Int, tenants: Int32, _ random: inout SplitMix
    ) -> ProducerEvent.Action {
        let person = Int.random(in: 0..<people, using: &random)
        let tenant = Int32(person) % tenants + 1
        let subject = "subject-\(Int.random(in: 0...2, using: &random))"
        switch random.fraction() {
        case ..<0.2: return .erase(tenant: tenant, thread: "thread-\(Int.random(in: 0...2, using: &random))")
        case ..<0.45: return .see(tenant: tenant, principal: principal(person), subject: subject)
        case ..<0.65: return .requeue(key: Int.random(in: 0..<rows, using: &random))
        case ..<0.75:
            return .setHook(random.fraction() < 0.5 ? .stale : .access, random.fraction() < 0.6)
        case ..<0.88: return .overByApp(subject: subject)
        default: return .bar(principal: principal(person), random.fraction() < 0.6)
        }
    }

    private static func drawAction(
        rows: Int, tenants: Int32, devices: [DeviceSetup], _ random: inout SplitMix
    ) -> ProducerEvent.Action {
        let draw = random.fraction()
        if draw < 0.2 {
            return .supersede(
                tenant: Int32.random(in: 1...tenants, using: &random),
                subject: "subject-\(Int.random(in: 0...2, using: &random))")
        }
        if draw < 0.3 || devices.isEmpty { return .cancel(key: Int.random(in: 0..<rows, using: &random)) }
        let place = Int.random(in: 0..<devices.count, using: &random)
        switch draw {
        case ..<0.65:
            let setup = devices[place]
            let isMoved = random.fraction() < 0.15
            let moved = DeviceSetup(
                client: random.fraction() < 0.2 ? "other" : setup.client, principal: setup.principal,
                tenant: setup.tenant, route: isMoved ? 3 - setup.route : setup.route)
            return .register(moved, isNewToken: random.fraction() < 0.6)
        case ..<0.75: return .revoke(device: place)
        case ..<0.85: return .mute(device: place, random.fraction() < 0.6)
        default: return .uninstall(device: place)
        }
    }
}
