/// What an operator has to know about a lane.
package enum LaneAlarm: Equatable, Sendable {
    /// The lane pauses: its configuration is wrong, or the provider wants less of all of it.
    case paused(lane: Int, status: Int16, reason: String, duration: Duration)
    /// The lane's access token is to be replaced.
    case replaceToken(lane: Int)
    /// The lane's connection is bad.
    case reconnect(lane: Int)
}
