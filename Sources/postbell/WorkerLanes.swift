import DispatchRuntime
import EventLoop
import HTTP2
import Operations
import OutboxCore
import Telemetry

/// All lanes of a worker: those of each provider's credentials, made from one configuration, so that the doctor looks
/// at the very values that a worker uses.
struct WorkerLanes {
    private let configuration: Configuration
    private let apns: APNSLanes
    private let fcm: FCMLanes

    init(_ configuration: Configuration, log: LogWriter) {
        self.configuration = configuration
        apns = APNSLanes(configuration, log: log)
        fcm = FCMLanes(configuration, log: log)
    }

    /// The lanes. Throws what is wrong with any credential and with the file of CAs, all of it at once.
    func make(on loop: EventLoop) throws(CommandFailure) -> [LaneConfiguration] {
        var lanes: [LaneConfiguration] = []
        var problems: [ConfigurationProblem] = []
        do throws(CommandFailure) { lanes += try apns.make() } catch { problems += error.problems }
        do throws(CommandFailure) { lanes += try fcm.make(on: loop) } catch { problems += error.problems }
        if !lanes.isEmpty {
            do throws(CommandFailure) { try checkCAFile() } catch { problems += error.problems }
        }
        guard problems.isEmpty else { throw CommandFailure(ConfigurationProblems(problems: problems)) }
        return lanes
    }

    /// Throws when the file of CAs, which all lanes share, cannot be loaded.
    func checkCAFile() throws(CommandFailure) {
        do throws(HTTP2ConnectionError) {
            try HTTP2ClientConfiguration(host: "localhost", port: 443, configuration.connections).checkCAFile()
        } catch {
            throw CommandFailure(certificateFile: error)
        }
    }

    /// Whether one of the lanes serves `route`.
    func cover(_ route: Route) -> Bool {
        apns.covers(route) || fcm.covers(route)
    }

    /// Where access tokens of FCM come from; nil when none are needed.
    var tokenTransport: HTTP2ClientConfiguration? {
        configuration.fcm.credentials.isEmpty ? nil : fcm.tokenTransport
    }
}
