/// What an operator has to know about a lane.
package enum LaneAlarm: Equatable, Sendable {
    /// The lane, or one topic of it, pauses: its configuration is wrong, or the provider wants less of all of it.
    case paused(lane: Int, route: RouteNumber?, LanePause)
    /// One topic of the lane pauses, for a reason that was told already when it held single targets of it.
    case spread(lane: Int, route: RouteNumber, LanePause)
    /// A probe was refused: the pause goes on.
    case prolonged(lane: Int, route: RouteNumber?, LanePause)
    /// A probe was answered: the pause is over.
    case resumed(lane: Int, route: RouteNumber?)
    /// A target is held, since its answer can mean a wrong configuration: told once per topic, reason and pause.
    case held(lane: Int, route: RouteNumber, status: Int16, reason: String)
    /// An answer calls the access token of its request, known by its mark, too old.
    case replaceToken(lane: Int, mark: UInt8, Outcome)
    /// The lane's connection is bad.
    case reconnect(lane: Int)
}
