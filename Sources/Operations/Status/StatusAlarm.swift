import OutboxCore

/// Something that somebody has to see to.
struct StatusAlarm: Equatable, Sendable {
    /// What kind of trouble; programs go by it.
    enum Name: String, Sendable {
        case unserved
        case lanePaused = "lane_paused"
        case laneDown = "lane_down"
        case hookFailing = "hook_failing"
        case lapsed, overdue, crashed
    }

    let name: Name
    /// The route, lane or kind concerned.
    let about: String
    /// What is wrong, in one sentence.
    let what: String
    /// What to do.
    let next: String
    /// Rows concerned; nil where none are counted.
    var rows: Int?
    /// Since when, and until when, where that is known.
    var since: Timestamp?
    var until: Timestamp?
}

extension StatusReport {
    /// All that is wrong, worst first. Empty: all is well.
    var alarms: [StatusAlarm] {
        unserved + lanes.compactMap(laneAlarm) + hooks.map(hookAlarm) + lapsed + overdue + crashed
    }

    private var unserved: [StatusAlarm] {
        routes.filter { $0.state == .unserved }.compactMap { route in
            let waiting = queue.filter { $0.route == route.route }
            let rows = waiting.reduce(0) { $0 + $1.waiting }
            guard rows > 0 else { return nil }
            let oldest = waiting.compactMap(\.oldestDueAt).min()
            let age = oldest.map { "the oldest due \(TimeText.distance(from: $0, to: now))" } ?? "none due yet"
            return StatusAlarm(
                name: .unserved, about: route.route,
                what: route.isWaitForDevice
                    ? "no worker is alive to end the wait of \(CountText.of(rows, "row")) for a first device, \(age)"
                    : "no live worker serves \(route.route), where "
                        + CountText.of(rows, "row", one: "waits", many: "wait") + ", \(age)",
                next: route.isWaitForDevice
                    ? "start a worker (`postbell dispatch`)"
                    : "start a worker whose credential covers that provider, environment and app", rows: rows,
                since: oldest)
        }
    }

    private func laneAlarm(_ lane: LaneStatus) -> StatusAlarm? {
        let since = lane.since.map { " since \(TimeText.withDistance($0, now: now))" } ?? ""
        let until = lane.until.map { TimeText.withDistance($0, now: now) } ?? "later"
        let cause = lane.reason.map { ": \($0)" } ?? ""
        switch lane.state {
        case .up, .probing, .unserved:
            return nil
        case .paused:
            return StatusAlarm(
                name: .lanePaused, about: lane.lane,
                what:
                    "lane \(lane.lane) of \(lane.worker), for \(lane.routes), is paused until \(until)\(since)\(cause)",
                next: "correct what the provider complains of; one push then tries whether it is right",
                since: lane.since, until: lane.until)
        case .down:
            return StatusAlarm(
                name: .laneDown, about: lane.lane,
                what: "lane \(lane.lane) of \(lane.worker) has no connection\(since)\(cause)",
                next: "see that the worker's host reaches the provider (`postbell check` tries it there)",
                since: lane.since, until: lane.until)
        }
    }

    private func hookAlarm(_ hook: HookStatus) -> StatusAlarm {
        StatusAlarm(
            name: .hookFailing, about: hook.kind,
            what: "\(hook.worker) has sent nothing of the kind \(hook.kind) since "
                + "\(TimeText.withDistance(hook.since, now: now)), because a hook of it fails: \(hook.reason)",
            next: "mend the function; it is asked again \(TimeText.withDistance(hook.until, now: now))",
            since: hook.since, until: hook.until)
    }

    private var lapsed: [StatusAlarm] {
        flight.filter { $0.lapsedLeases > 0 }.map { flight in
            let isAlive = workers.contains { $0.state == .alive }
            return StatusAlarm(
                name: .lapsed, about: flight.route,
                what:
                    "\(CountText.of(flight.lapsedLeases, "lease")) of \(flight.route) ran out and nobody "
                    + "has taken over, the first "
                    + (flight.lapsedAt.map { TimeText.distance(from: $0, to: now) } ?? ""),
                next: isAlive
                    ? "see the log of the live workers: one of them takes over, unless the database's clock was set"
                    : "start a worker: any one takes over what dead ones held",
                since: flight.lapsedAt)
        }
    }

    private var overdue: [StatusAlarm] {
        let unserved = Set(routes.filter { $0.state == .unserved }.map(\.route))
        return queue.filter { $0.overdue > 0 && !unserved.contains($0.route) }.map { queue in
            StatusAlarm(
                name: .overdue, about: queue.route,
                what: "\(CountText.of(queue.overdue, "\(queue.urgency) row")) of \(queue.route) "
                    + "\(queue.overdue == 1 ? "has" : "have") been due for more than "
                    + "\(TimeText.length(stuckAfter))"
                    + (queue.oldestDueAt.map { ", the oldest \(TimeText.distance(from: $0, to: now))" } ?? ""),
                next: "look at the lanes below and at `postbell ledger`: too few workers, or a slow provider",
                rows: queue.overdue, since: queue.oldestDueAt)
        }
    }

    private var crashed: [StatusAlarm] {
        queue.filter { $0.crashed > 0 }.map { queue in
            StatusAlarm(
                name: .crashed, about: queue.route,
                what: "\(CountText.of(queue.crashed, "\(queue.urgency) row")) of \(queue.route) "
                    + "\(queue.crashed == 1 ? "was" : "were") held by a worker that died",
                next: "see why workers die; each is tried alone, and set aside as failed after POSTBELL_MAX_CRASHES",
                rows: queue.crashed)
        }
    }
}
