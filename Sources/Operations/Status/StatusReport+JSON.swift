import OutboxCore

extension StatusReport {
    /// The report for programs. The names are documented and stay.
    var json: JSONText {
        let alarms = alarms
        return .object([
            ("now", .instant(now)), ("well", .bool(alarms.isEmpty)), ("alarms", .array(alarms.map(\.json))),
            ("queue", .array(queue.map(\.json))), ("routes", .array(routes.map(\.json))),
            ("in_flight", .array(flight.map(\.json))), ("workers", .array(workers.map(\.json))),
            ("lanes", .array(lanes.map(\.json))), ("hooks", .array(hooks.map(\.json))),
            ("last_minute", recent.json),
        ])
    }
}

extension StatusAlarm {
    fileprivate var json: JSONText {
        .object([
            ("name", .string(name.rawValue)), ("about", .string(about)), ("what", .string(what)),
            ("next", .string(next)), ("rows", .int(rows)), ("since", .instant(since)), ("until", .instant(until)),
        ])
    }
}

extension QueueStatus {
    fileprivate var json: JSONText {
        .object([
            ("route", .string(route)), ("urgency", .string(urgency)), ("waiting", .int(waiting)), ("due", .int(due)),
            ("oldest_due_at", .instant(oldestDueAt)), ("overdue", .int(overdue)), ("crashed", .int(crashed)),
        ])
    }
}

extension RouteStatus {
    fileprivate var json: JSONText {
        .object([
            ("route", .string(route)), ("provider", .string(provider)), ("environment", .string(environment)),
            ("app", .string(app)), ("workers", .int(workers)), ("state", .string(state.rawValue)),
            ("lane", .string(lane)), ("reason", .string(reason)), ("since", .instant(since)),
            ("until", .instant(until)),
        ])
    }
}

extension FlightStatus {
    fileprivate var json: JSONText {
        .object([
            ("route", .string(route)), ("leases", .int(leases)), ("rows", .int(rows)),
            ("lapsed_leases", .int(lapsedLeases)), ("lapsed_at", .instant(lapsedAt)),
        ])
    }
}

extension WorkerStatus {
    fileprivate var json: JSONText {
        .object([
            ("name", .string(name)), ("version", .string(version)), ("state", .string(state.rawValue)),
            ("started_at", .instant(startedAt)), ("heartbeat_at", .instant(heartbeatAt)),
            ("stopped_at", .instant(stoppedAt)), ("routes", .int(routes)), ("leased", .int(leased)),
        ])
    }
}

extension LaneStatus {
    fileprivate var json: JSONText {
        .object([
            ("lane", .string(lane)), ("worker", .string(worker)), ("routes", .string(routes)),
            ("state", .string(state.rawValue)), ("reason", .string(reason)), ("since", .instant(since)),
            ("until", .instant(until)),
        ])
    }
}

extension RecentStatus {
    fileprivate var json: JSONText {
        .object([
            ("outcomes", .object(outcomes.map { ($0.name, .int($0.count)) })),
            (
                "accepted_after_us",
                .object([
                    ("median", .int(median.map { Int($0.wholeMicroseconds) })),
                    ("p99", .int(percentile99.map { Int($0.wholeMicroseconds) })),
                ])
            ),
        ])
    }
}
