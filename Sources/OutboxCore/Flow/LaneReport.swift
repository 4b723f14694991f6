/// A lane as the registry of workers shows it to people.
package struct LaneReport: Equatable, Sendable {
    /// What a lane does about its rows.
    package enum Condition: String, Equatable, Sendable {
        /// It sends, or would if there were something to send.
        case up
        /// It has no connection.
        case down
        /// It waits, because its configuration is wrong or the provider wants less.
        case paused
    }

    /// `provider/environment/credential`.
    package let name: String
    /// What it does about its rows.
    package let condition: Condition
    /// Why it is not up; nil while it is.
    package let reason: String?
    /// Since when it is not up; nil while it is.
    package let since: Timestamp?
    /// When it tries again; nil while it is up.
    package let until: Timestamp?
    /// The routes whose rows it takes.
    package let routes: [RouteNumber]

    /// A lane that is up unless said otherwise.
    package init(
        name: String, condition: Condition = .up, reason: String? = nil, since: Timestamp? = nil,
        until: Timestamp? = nil, routes: [RouteNumber]
    ) {
        self.name = name
        self.condition = condition
        self.reason = reason
        self.since = since
        self.until = until
        self.routes = routes
    }
}

extension DispatchState {
    /// How all lanes stand, in the database's time. A worker that stops takes nothing from any route any more.
    package var laneReports: [LaneReport] {
        lanes.flatMap { lane in
            let name = lane.description.name
            guard !isDraining else { return [LaneReport(name: name, routes: [])] }
            if let trouble = lane.trouble { return [report(name, trouble, routes: lane.routes)] }
            let paused = lane.topics.compactMap { topic in topic.gate.pause.map { (topic.route, $0) } }
            let open = lane.routes.filter { route in !paused.contains { $0.0 == route } }
            // A paused topic stands beside its lane, which goes on with the others.
            return [LaneReport(name: name, routes: open)]
                + paused.map { report("\(name)/route-\($0)", LaneState.Trouble($1), routes: [$0]) }
        }
    }

    private func report(_ name: String, _ trouble: LaneState.Trouble, routes: [RouteNumber]) -> LaneReport {
        LaneReport(
            name: name, condition: trouble.condition, reason: trouble.reason, since: clock.time(at: trouble.since),
            until: clock.time(at: trouble.until), routes: routes)
    }
}
