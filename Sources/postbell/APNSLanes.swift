import DispatchRuntime
import Operations

/// The lanes of the APNs credential: one per environment, each with connections and state of its own.
enum APNSLanes {
    static func make(_ configuration: Configuration) throws(CommandFailure) -> [LaneConfiguration] {
        []
    }
}
