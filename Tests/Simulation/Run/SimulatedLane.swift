import OutboxCore

/// One request on its way.
struct Request {
    let tag: AttemptTag
    /// Its number in the run.
    let serial: Int
    let worker: Int
    let life: Int
    let lane: Int
    let batch: Identifier
    let notification: Identifier
    let device: Int64
    let route: RouteNumber
    let token: String
    let tokenSequence: Int32
    let collapseKey: String
    let expiresAt: Timestamp
    /// By the worker's idea of the database's clock.
    let madeAt: Timestamp
}

/// The transport of one lane: so many requests at a time, each of which ends once.
struct SimulatedLane {
    let route: RouteNumber
    let capacity: Int
    var isDown = false
    private var requests: [(request: Request, isWritten: Bool)] = []

    init(route: RouteNumber, capacity: Int) {
        self.route = route
        self.capacity = capacity
    }

    var room: Int { max(0, capacity - requests.count) }

    mutating func open(_ request: Request) {
        requests.append((request, false))
    }

    func isOpen(_ serial: Int) -> Bool { requests.contains { $0.request.serial == serial } }
    func isWritten(_ serial: Int) -> Bool { requests.contains { $0.request.serial == serial && $0.isWritten } }

    mutating func wrote(_ serial: Int) {
        if let place = requests.firstIndex(where: { $0.request.serial == serial }) { requests[place].isWritten = true }
    }

    /// One request has ended; false when it had before.
    mutating func close(_ serial: Int) -> Bool {
        guard let place = requests.firstIndex(where: { $0.request.serial == serial }) else { return false }
        requests.remove(at: place)
        return true
    }

    mutating func takeAll() -> [Request] { takeAllWithFate().map(\.request) }

    mutating func takeAllWithFate() -> [(request: Request, isWritten: Bool)] {
        defer { requests = [] }
        return requests
    }
}
