import DispatchRuntime
import HTTP2
import Operations
import OutboxCore
import Telemetry

/// All lanes of a worker: those of each provider's credentials, made from one configuration, so that the doctor looks
/// at the very values that a worker uses.
struct WorkerLanes {
    private let apns: APNSLanes

    init(_ configuration: Configuration, log: LogWriter) {
        apns = APNSLanes(configuration, log: log)
    }

    /// The lanes. Throws what is wrong with any credential, all of it at once, or with the file of CAs.
    func make() throws(CommandFailure) -> [LaneConfiguration] {
        let lanes = try apns.make()
        do throws(HTTP2ConnectionError) {
            for lane in lanes { try lane.transport.checkCAFile() }
        } catch {
            throw CommandFailure(certificateFile: error)
        }
        return lanes
    }

    /// Whether one of the lanes serves `route`.
    func cover(_ route: Route) -> Bool {
        apns.covers(route)
    }
}
