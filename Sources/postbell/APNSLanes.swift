import APNS
import Credentials
import DispatchRuntime
import HTTP2
import Operations
import OutboxCore
import Telemetry

/// The lanes of the APNs credential: one per environment, each with connections, limits and a state of its own. They
/// share the provider token, since Apple counts tokens per key.
struct APNSLanes {
    private let configuration: Configuration
    private let credential: Configuration.APNS.Credential
    private let log: LogWriter

    /// Nil when no credential is configured.
    init?(_ configuration: Configuration, log: LogWriter) {
        guard let credential = configuration.apns.credential else { return nil }
        self.configuration = configuration
        self.credential = credential
        self.log = log
    }

    /// The lanes. Makes a token at once, so that a key that cannot sign is refused at start.
    func make() throws(CommandFailure) -> [LaneConfiguration] {
        let tokens = try tokenCache()
        var lanes: [LaneConfiguration] = []
        for environment in APNSEnvironment.allCases { lanes.append(try lane(environment, tokens)) }
        do throws(HTTP2ConnectionError) {
            for lane in lanes { try lane.transport.checkCAFile() }
        } catch {
            throw CommandFailure(certificateFile: error)
        }
        return lanes
    }

    /// Whether one of the lanes serves `route`.
    func covers(_ route: Route) -> Bool {
        APNSEnvironment.allCases.contains { Self.covers(route, Set(credential.topics), $0) }
    }

    private static func covers(_ route: Route, _ topics: Set<String>, _ environment: APNSEnvironment) -> Bool {
        route.provider == "apns" && route.environment == environment.rawValue && topics.contains(route.app)
    }

    /// The token cache of the credential, which has made its first token: the key is there and can sign.
    func tokenCache() throws(CommandFailure) -> TokenCache {
        guard let schedule = TokenSchedule(refreshAge: configuration.apns.tokenRefresh) else {
            throw CommandFailure(
                .configuration, what: "the age at which the provider token is made anew is out of range",
                place: "POSTBELL_APNS_JWT_REFRESH", next: "set it between 20m and 55m")
        }
        let tokens = TokenCache(
            file: keyFile, keyID: credential.keyID, teamID: credential.teamID, schedule: schedule)
        do throws(CredentialError) {
            _ = try tokens.token(now: .now)
        } catch {
            throw CommandFailure(error)
        }
        return tokens
    }

    private func lane(
        _ environment: APNSEnvironment, _ tokens: TokenCache
    ) throws(CommandFailure) -> LaneConfiguration {
        let settings: APNSConfiguration
        do throws(APNSConfigurationError) {
            settings = try APNSConfiguration(
                environment: environment, keyID: credential.keyID, teamID: credential.teamID,
                topics: credential.topics, endpoint: replacementEndpoint,
                serverErrorDelay: configuration.apns.serverErrorDelay)
        } catch {
            throw CommandFailure(
                .configuration, what: error.description, place: "the APNs credential", next: "correct its APNS_ setting"
            )
        }
        return LaneConfiguration(
            description: LaneDescription(
                name: "apns/\(environment.rawValue)/default", pause: configuration.apns.pause),
            serves: { [topics = Set(credential.topics)] route in
                Self.covers(route, topics, environment)
            },
            transport: transport(to: settings.endpoint),
            provider: { [log] in
                APNSProvider(settings, tokens: tokens) { fault in
                    log.error("no provider token can be made", [.cause: .text(fault.description)])
                }
            })
    }

    /// The file of the credential's key.
    var keyFile: KeyFile {
        KeyFile(path: credential.keyFile, credentialsDirectory: credential.credentialsDirectory)
    }

    private var replacementEndpoint: APNSEndpoint? {
        configuration.apns.endpoint.map { APNSEndpoint(host: $0.host, port: UInt16($0.port)) }
    }

    private func transport(to endpoint: APNSEndpoint) -> HTTP2ClientConfiguration {
        var transport = HTTP2ClientConfiguration(host: endpoint.host, port: endpoint.port)
        let connections = configuration.connections
        transport.concurrency = connections.concurrency
        transport.connectionsMax = connections.most
        transport.requestTimeout = connections.requestTimeout
        transport.connectTimeout = connections.connectTimeout
        transport.pingAfter = connections.pingAfter
        transport.pingTimeout = connections.pingTimeout
        transport.idleTimeout = connections.idleTimeout
        transport.caFile = connections.certificateFile
        transport.capturedHeaders = APNSProvider.capturedHeaders
        return transport
    }
}
