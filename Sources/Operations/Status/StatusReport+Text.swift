import OutboxCore

extension StatusReport {
    /// The report for people.
    func text(for terminal: Terminal) -> String {
        let alarms = alarms
        let head =
            alarms.isEmpty
            ? terminal.paint("all is well", .green)
            : terminal.paint(CountText.of(alarms.count, "alarm"), .red)
        var parts = ["\(head)  \(TimeText.absolute(now))\n" + alarms.map { line($0, terminal) }.joined()]
        parts.append(queueText(terminal))
        parts.append(workerText(terminal))
        if !lanes.isEmpty { parts.append(laneText(terminal)) }
        parts.append(recentText)
        return parts.joined(separator: "\n")
    }

    private func line(_ alarm: StatusAlarm, _ terminal: Terminal) -> String {
        let text = terminal.wrapped("! \(QuotedText.line(alarm.what)); \(alarm.next)")
        return terminal.paint("!", .red) + text.dropFirst() + "\n"
    }

    private func queueText(_ terminal: Terminal) -> String {
        guard !queue.isEmpty || !flight.isEmpty else { return "nothing waits, and nothing is in flight\n" }
        var table = TableFormatter("ROUTE", "IS", "URGENCY", "WAITING", "DUE", "OLDEST DUE", "CRASHED")
        for queue in queue {
            table.append(
                queue.route, routes.first { $0.route == queue.route }?.state.rawValue ?? "-", queue.urgency,
                String(queue.waiting), String(queue.due),
                queue.oldestDueAt.map { TimeText.distance(from: $0, to: now) } ?? "-", String(queue.crashed))
        }
        let rows = flight.reduce(0) { $0 + $1.rows }
        let leases = flight.reduce(0) { $0 + $1.leases }
        let inFlight =
            leases == 0
            ? "nothing is in flight" : "in flight: \(CountText.of(rows, "row")) in \(CountText.of(leases, "lease"))"
        return (queue.isEmpty ? "nothing waits\n" : table.text(for: terminal)) + inFlight + "\n"
    }

    private func workerText(_ terminal: Terminal) -> String {
        let shown = workers.filter { $0.state != .stopped }
        let stopped = workers.count - shown.count
        let note = stopped == 0 ? "" : "\(stopped) stopped within the last day\n"
        guard !shown.isEmpty else { return "no worker is alive\n" + note }
        var table = TableFormatter("WORKER", "IS", "HEARTBEAT", "STARTED", "ROUTES", "HOLDS", "VERSION")
        for worker in shown {
            table.append(
                worker.name, worker.state.rawValue, TimeText.distance(from: worker.heartbeatAt, to: now),
                TimeText.distance(from: worker.startedAt, to: now), String(worker.routes), String(worker.leased),
                worker.version)
        }
        let isAlive = shown.contains { $0.state == .alive }
        return (isAlive ? "" : "no worker is alive\n") + table.text(for: terminal) + note
    }

    private func laneText(_ terminal: Terminal) -> String {
        var table = TableFormatter("LANE", "OF", "ROUTES", "IS", "SINCE", "UNTIL", "WHY")
        for lane in lanes {
            table.append(
                lane.lane, lane.worker, lane.routes, lane.state.rawValue,
                lane.since.map { TimeText.distance(from: $0, to: now) } ?? "-",
                lane.until.map { TimeText.distance(from: $0, to: now) } ?? "-", lane.reason ?? "-")
        }
        return table.text(for: terminal)
    }

    private var recentText: String {
        guard !recent.outcomes.isEmpty else { return "last minute: no attempt\n" }
        var text = "last minute: " + recent.outcomes.map { "\($0.count) \($0.name)" }.joined(separator: ", ")
        if let median = recent.median, let slow = recent.percentile99 {
            text += "; from planned to accepted: half within \(TimeText.length(median)), "
            text += "99 % within \(TimeText.length(slow))"
        }
        return text + "\n"
    }
}
