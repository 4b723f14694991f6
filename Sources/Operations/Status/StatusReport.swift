import OutboxCore
import Postgres

/// How the whole instance is at one moment.
struct StatusReport: Equatable, Sendable {
    /// The database's time.
    var now: Timestamp
    /// For how long a row may be due before it counts as stuck.
    var stuckAfter: Duration
    var queue: [QueueStatus] = []
    var routes: [RouteStatus] = []
    var flight: [FlightStatus] = []
    var workers: [WorkerStatus] = []
    var lanes: [LaneStatus] = []
    var hooks: [HookStatus] = []
    var recent = RecentStatus(outcomes: [], median: nil, percentile99: nil)

    /// A live worker recovers lapsed leases once a second; after a step of the clock or an outage later.
    static let recoveryGrace = Duration.seconds(10)

    static func read(_ session: ReadingSession, now: Timestamp) async throws(CommandFailure) -> StatusReport {
        var report = StatusReport(now: now, stuckAfter: session.stuckAfter)
        var parameters = PostgresParameters()
        parameters.append(session.stuckAfter)
        report.queue = try await session.rows(StatusStatements.queue, parameters) { row throws(PostgresError) in
            QueueStatus(
                route: try row.text(), urgency: try row.text(), waiting: try row.int8(), due: try row.int8(),
                oldestDueAt: try row.instantOrNil(), overdue: try row.int8(), crashed: try row.int8())
        }
        report.routes = try await session.rows(StatusStatements.routes) { row throws(PostgresError) in
            try RouteStatus(&row)
        }
        parameters.removeAll()
        parameters.append(recoveryGrace)
        report.flight = try await session.rows(StatusStatements.flight, parameters) { row throws(PostgresError) in
            FlightStatus(
                route: try row.text(), leases: try row.int8(), rows: try row.int8(), lapsedLeases: try row.int8(),
                lapsedAt: try row.instantOrNil())
        }
        report.workers = try await session.rows(StatusStatements.workers) { row throws(PostgresError) in
            WorkerStatus(
                name: try row.text(), version: try row.text(),
                state: WorkerStatus.State(rawValue: try row.text()) ?? .dead, startedAt: try row.instant(),
                heartbeatAt: try row.instant(), stoppedAt: try row.instantOrNil(), routes: try row.int4(),
                leased: try row.int8())
        }
        report.lanes = try await session.rows(StatusStatements.lanes) { row throws(PostgresError) in
            LaneStatus(
                lane: try row.text(), worker: try row.text(), routes: try row.textOrNil() ?? "", state: try row.state(),
                reason: try row.textOrNil(),
                since: try row.instantOrNil(), until: try row.instantOrNil())
        }
        report.hooks = try await session.rows(StatusStatements.hooks) { row throws(PostgresError) in
            try HookStatus(&row)
        }
        report.recent = try await recent(session)
        return report
    }

    private static func recent(_ session: ReadingSession) async throws(CommandFailure) -> RecentStatus {
        let outcomes = try await session.rows(StatusStatements.outcomes) { row throws(PostgresError) in
            (name: try row.text(), count: try row.int8())
        }
        let latency = try await session.rows(StatusStatements.latency) { row throws(PostgresError) in
            (median: try row.durationOrNil(), percentile99: try row.durationOrNil())
        }
        return RecentStatus(
            outcomes: outcomes, median: latency.first?.median, percentile99: latency.first?.percentile99)
    }
}

extension RouteStatus {
    /// Reads the columns of `postbell.route_service` from `route` on.
    init(_ row: inout RowReader) throws(PostgresError) {
        route = try row.text()
        provider = try row.text()
        environment = try row.textOrNil()
        app = try row.text()
        workers = try row.int8()
        state = try row.state()
        lane = try row.textOrNil()
        reason = try row.textOrNil()
        since = try row.instantOrNil()
        until = try row.instantOrNil()
    }
}

extension RowReader {
    /// A route's or lane's state. What a newer worker may say is no more than down for this program.
    fileprivate mutating func state() throws(PostgresError) -> RouteStatus.State {
        RouteStatus.State(rawValue: try text()) ?? .down
    }

    /// A count of microseconds.
    fileprivate mutating func durationOrNil() throws(PostgresError) -> Duration? {
        try optional { reader throws(PostgresError) in .microseconds(try reader.int8()) }
    }
}
