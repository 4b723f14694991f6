/// What an operator has to know about a lane.
package enum LaneAlarm: Equatable, Sendable {
    /// The lane pauses because its configuration is wrong.
    case paused(lane: Int, status: Int16, reason: String)
    /// The lane's access token is to be replaced.
    case replaceToken(lane: Int)
    /// The lane's connection is bad.
    case reconnect(lane: Int)
}
