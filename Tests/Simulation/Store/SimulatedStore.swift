import OutboxCore

/// The outbox as plain values: what the statements of `OutboxPostgres` do, without a database.
///
/// Each call is one statement in autocommit, carried out at `now` by the database's clock, which the caller moves. The
/// conformance suite holds it to PostgreSQL; the simulation lets workers run on it.
struct SimulatedStore {
    /// The database's clock.
    var now: Timestamp
    /// What it does wrong; nil for nothing. For tests of the simulation itself.
    var defect: StoreDefect?
    /// Draws identifiers.
    var random: SplitMix
    /// How long a notification without devices waits for the first one.
    var waitForDevice = Duration.zero

    var notifications: [NotificationRow] = []
    var queue: [QueueRow] = []
    var leases: [LeaseRow] = []
    var ledger: [DeliveryRow] = []
    var settlements: [SettlementRow] = []
    var supersessions: [(tenant: Int32, subject: String, at: Timestamp)] = []
    var erasures: [(tenant: Int32, thread: String, at: Timestamp)] = []
    var receipts: [(tenant: Int32, principal: String, subject: String, at: Timestamp)] = []
    var devices: [DeviceRow] = []
    var workers: [WorkerRow] = []
    /// Which hooks are set.
    var hooks: [KindHook] = []
    /// What the app's hooks answer from.
    var app = HookedApp()
    /// Keys of lifecycle events, in the order in which they were written.
    var events: [String] = []
    /// Devices that an open transaction of a back end holds.
    var lockedDevices: [Int64] = []
    /// Notifications whose queue rows an open transaction holds.
    var lockedNotifications: [Identifier] = []
    /// Who holds the awake key of each route.
    var awake: [(route: RouteNumber, owner: Identifier)] = []
    /// Every claim that was carried out, whatever became of it: what may have been sent.
    var claims: [Identifier: [(notification: Identifier, device: Int64)]] = [:]

    /// Recovered leases whose owner was dead by the registry alone, and leases that a recovery left alone because they
    /// lapsed after it was sent.
    var deathsByRegistry = 0
    var lapsedLater = 0

    private var places: [Identifier: Int] = [:]
    private var ledgerPlaces: [Identifier: [Int]] = [:]
    private var ledgerIdentifiers: Set<Identifier> = []
    private var identifiers = LedgerIdentifiers()

    init(now: Timestamp, seed: UInt64, defect: StoreDefect? = nil) {
        self.now = now
        self.defect = defect
        random = SplitMix(seed: seed)
    }

    /// A UUIDv7 of the database's clock.
    mutating func nextIdentifier() -> Identifier {
        identifiers.next(at: now, using: &random)
    }

    // MARK: Looking

    func notification(_ identifier: Identifier) -> NotificationRow? {
        places[identifier].map { notifications[$0] }
    }

    /// Where a notification is among all, in the order in which they were enqueued.
    func place(of notification: Identifier) -> Int? { places[notification] }

    func device(_ number: Int64) -> DeviceRow? {
        devices.indices.contains(Int(number) - 1) ? devices[Int(number) - 1] : nil
    }

    /// Ledger rows of a notification, in the order in which they were written.
    func ledger(of notification: Identifier) -> [DeliveryRow] {
        (ledgerPlaces[notification] ?? []).map { ledger[$0] }
    }

    /// Whether the whole notification has ended.
    func isClosed(_ notification: Identifier) -> Bool {
        settlements.contains { $0.notification == notification && $0.route == nil }
    }

    /// Live devices that a notification is addressed to, on one route or on all, in their order.
    func liveDevices(of row: NotificationRow, route: RouteNumber? = nil) -> [DeviceRow] {
        devices.filter { $0.isLive && isAddressed($0, by: row) && (route == nil || $0.route == route) }
    }

    func isAddressed(_ device: DeviceRow, by row: NotificationRow) -> Bool {
        device.tenant == row.tenant && device.principal == row.principal
            && (row.onlyDevice == nil || row.onlyDevice == device.number) && row.exceptDevice != device.number
    }

    // MARK: Writing

    mutating func add(_ row: NotificationRow) {
        places[row.identifier] = notifications.count
        notifications.append(row)
    }

    /// The database no longer has a notification, as after a restore: what it left in the queue is an orphan.
    mutating func lose(_ notification: Identifier) {
        guard let place = places[notification] else { return }
        notifications[place].isVisible = false
    }

    /// Adds a ledger row; answers whether it was new.
    mutating func add(_ row: DeliveryRow) -> Bool {
        guard ledgerIdentifiers.insert(row.identifier).inserted || defect == .ledgerRepeats else { return false }
        ledgerPlaces[row.notification, default: []].append(ledger.count)
        ledger.append(row)
        return true
    }

    /// Puts a row into the queue, unless the dispatch waits there already; answers whether it was put.
    mutating func enqueue(_ row: QueueRow) -> Bool {
        guard !queue.contains(where: { $0.notification == row.notification && $0.route == row.route }) else {
            return false
        }
        queue.append(row)
        return true
    }

    mutating func changeLedger(of notification: Identifier, _ change: (inout DeliveryRow) -> Void) {
        for place in ledgerPlaces[notification] ?? [] { change(&ledger[place]) }
    }

    /// One line in the life of a device; a key that is there already adds nothing.
    mutating func event(_ name: String, of device: DeviceRow, _ detail: String = "") {
        let key = "\(name):\(device.number):\(device.tokenSequence)"
        if !events.contains(key) { events.append(key) }
    }
}
