import OutboxCore

/// How much of one urgency waits on a route.
struct QueueStatus: Equatable, Sendable {
    /// `provider/environment/app`.
    let route: String
    /// `urgent` or `bulk`.
    let urgency: String
    let waiting: Int
    /// Of these, rows that could be claimed now.
    let due: Int
    let oldestDueAt: Timestamp?
    /// Rows that have been due for longer than the stuck-after time.
    let overdue: Int
    /// Rows whose worker died while it held them.
    let crashed: Int
}

/// What is claimed and not settled on a route.
struct FlightStatus: Equatable, Sendable {
    let route: String
    let leases: Int
    /// Rows still held by them.
    let rows: Int
    /// Leases that ran out and that nobody recovered, although a live worker does so within a second.
    let lapsedLeases: Int
    /// When the first of these ran out.
    let lapsedAt: Timestamp?
}

/// Who serves a route, and whether it is sent on.
struct RouteStatus: Equatable, Sendable {
    /// The states of `postbell.route_service`.
    enum State: String, Sendable {
        case up, down, paused, probing, unserved
    }

    let route: String
    let provider: String
    let environment: String?
    let app: String
    /// Live workers that serve it.
    let workers: Int
    let state: State
    /// The best of its lanes, and why that is not up; nil where there is none to tell of.
    var lane: String?
    var reason: String?
    var since: Timestamp?
    var until: Timestamp?

    /// Where notifications wait for a first device.
    var isWaitForDevice: Bool { provider == "none" }
}

/// A worker of the registry.
struct WorkerStatus: Equatable, Sendable {
    /// The states of `postbell.worker_health`.
    enum State: String, Sendable {
        case alive, dead, stopped
    }

    /// `host/process`.
    let name: String
    let version: String
    let state: State
    let startedAt: Timestamp
    let heartbeatAt: Timestamp
    let stoppedAt: Timestamp?
    let routes: Int
    /// Rows that it holds on lease.
    let leased: Int
}

/// A lane of a live worker.
struct LaneStatus: Equatable, Sendable {
    /// `provider/environment/credential`.
    let lane: String
    let worker: String
    /// Names of the routes that it serves, with commas between them.
    let routes: String
    let state: RouteStatus.State
    let reason: String?
    let since: Timestamp?
    let until: Timestamp?
}

/// What was attempted within the last minute.
struct RecentStatus: Equatable, Sendable {
    /// Attempts by outcome, most frequent first.
    let outcomes: [(name: String, count: Int)]
    /// From the planned moment to the provider's acceptance; nil when nothing was accepted.
    let median: Duration?
    /// The same for the slowest of a hundred.
    let percentile99: Duration?

    static func == (left: RecentStatus, right: RecentStatus) -> Bool {
        left.outcomes.map(\.name) == right.outcomes.map(\.name)
            && left.outcomes.map(\.count) == right.outcomes.map(\.count)
            && left.median == right.median && left.percentile99 == right.percentile99
    }
}
