import Credentials
import DispatchRuntime
import EventLoop
import FCM
import HTTP2
import Operations
import OutboxCore
import Telemetry

/// The lanes of the FCM credentials: one per service account, with its own access tokens, connections, limits and
/// state.
struct FCMLanes {
    /// FCM ends a connection with more streams than this, whatever its SETTINGS say.
    private static let streamsMax = 100

    private let configuration: Configuration
    private let log: LogWriter

    init(_ configuration: Configuration, log: LogWriter) {
        self.configuration = configuration
        self.log = log
    }

    /// The lanes. Reads each account at once, so that a file that cannot be used is refused at start, and says of all
    /// credentials what is wrong with them. Asks for nothing yet.
    func make(on loop: EventLoop) throws(CommandFailure) -> [LaneConfiguration] {
        var lanes: [LaneConfiguration] = []
        var problems: [ConfigurationProblem] = []
        for credential in configuration.fcm.credentials {
            do throws(CommandFailure) {
                lanes.append(try lane(of: credential, on: loop))
            } catch {
                problems += error.problems
            }
        }
        guard problems.isEmpty else { throw CommandFailure(ConfigurationProblems(problems: problems)) }
        return lanes
    }

    /// Whether one of the lanes serves `route`.
    func covers(_ route: Route) -> Bool {
        configuration.fcm.credentials.contains { Self.covers(route, $0.apps.map { Set($0) }) }
    }

    /// Where access tokens come from.
    var tokenTransport: HTTP2ClientConfiguration {
        let endpoint = configuration.fcm.tokenEndpoint
        return HTTP2ClientConfiguration(
            host: endpoint?.host ?? AccessTokenSource.googleHost, port: UInt16(endpoint?.port ?? 443),
            configuration.connections)
    }

    /// The account of `credential` and what its lane is made of; throws what is wrong with its file.
    func account(
        of credential: Configuration.FCM.Credential
    ) throws(CommandFailure) -> (email: String, settings: FCMConfiguration) {
        let email: String
        let project: String
        do throws(ServiceAccountError) {
            let account = try ServiceAccount(credential.file)
            (email, project) = (account.clientEmail, account.projectID)
        } catch {
            throw CommandFailure(error, place: credential.variable(.serviceAccountFile))
        }
        return (email, try settings(project, credential))
    }

    private static func covers(_ route: Route, _ apps: Set<String>?) -> Bool {
        route.provider == "fcm" && apps?.contains(route.app) ?? true
    }

    private func lane(
        of credential: Configuration.FCM.Credential, on loop: EventLoop
    ) throws(CommandFailure) -> LaneConfiguration {
        let name = "fcm/\(credential.name)"
        let source = try source(of: credential, named: name, on: loop)
        let settings = try settings(source.projectID, credential)
        var transport = HTTP2ClientConfiguration(
            host: settings.endpoint.host, port: settings.endpoint.port, configuration.connections)
        transport.streamsMax = Self.streamsMax
        transport.capturedHeaders = FCMProvider.capturedHeaders
        return LaneConfiguration(
            description: LaneDescription(name: name, pause: configuration.fcm.pause),
            serves: { [apps = credential.apps.map { Set($0) }] route in Self.covers(route, apps) },
            transport: transport,
            provider: { accessChanged in FCMProvider(settings, source: source, accessChanged: accessChanged) })
    }

    private func source(
        of credential: Configuration.FCM.Credential, named name: String, on loop: EventLoop
    ) throws(CommandFailure) -> AccessTokenSource {
        do throws(ServiceAccountError) {
            return try AccessTokenSource(
                credential.file, transport: tokenTransport, on: loop,
                reportsFault: { [log] fault in
                    log.error("no access token can be had", [.lane: .text(name), .cause: .text(fault.description)])
                })
        } catch {
            throw CommandFailure(error, place: credential.variable(.serviceAccountFile))
        }
    }

    private func settings(
        _ project: String, _ credential: Configuration.FCM.Credential
    ) throws(CommandFailure) -> FCMConfiguration {
        let endpoint = configuration.fcm.endpoint.map { FCMEndpoint(host: $0.host, port: UInt16($0.port)) }
        do throws(FCMConfigurationError) {
            return try FCMConfiguration(
                project: project, endpoint: endpoint ?? .google, throttleDelay: configuration.fcm.quotaDelay)
        } catch {
            throw CommandFailure(
                .configuration, what: error.description, place: credential.variable(.serviceAccountFile),
                next: "use the JSON file of a service account key as it was downloaded from the Google Cloud console")
        }
    }
}

extension Configuration.FCM.Credential {
    /// The file of its service account.
    var file: KeyFile {
        KeyFile(path: serviceAccountFile, credentialsDirectory: credentialsDirectory)
    }
}
