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
    package func laneReports(at now: ContinuousClock.Instant) -> [LaneReport] {
        lanes.map { lane in
            let routes = isDraining ? [] : lane.routes
            guard let trouble = lane.trouble(at: now) else {
                return LaneReport(name: lane.description.name, routes: routes)
            }
            return LaneReport(
                name: lane.description.name, condition: trouble.condition, reason: trouble.reason,
                since: clock.time(at: trouble.since), until: clock.time(at: trouble.until), routes: routes)
        }
    }
}
