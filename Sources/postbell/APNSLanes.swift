import APNS
import Credentials
import DispatchRuntime
import HTTP2
import Operations
import OutboxCore
import Telemetry

/// The lanes of the APNs credentials: one per credential and environment, each with connections, limits and a state of
/// its own. Credentials that are one key share its provider token, since Apple counts tokens per key; different keys
/// never do.
struct APNSLanes {
    private let configuration: Configuration
    private let log: LogWriter

    init(_ configuration: Configuration, log: LogWriter) {
        self.configuration = configuration
        self.log = log
    }

    /// The lanes. Makes each token at once, so that a key that cannot sign is refused at start, and says of all
    /// credentials what is wrong with them.
    func make() throws(CommandFailure) -> [LaneConfiguration] {
        var tokens: [SigningIdentity: TokenCache] = [:]
        var lanes: [LaneConfiguration] = []
        var problems: [ConfigurationProblem] = []
        for credential in configuration.apns.credentials {
            do throws(CommandFailure) {
                lanes += try self.lanes(of: credential, &tokens)
            } catch {
                problems += error.problems
            }
        }
        guard problems.isEmpty else { throw CommandFailure(ConfigurationProblems(problems: problems)) }
        return lanes
    }

    /// The lanes of one credential, with a token cache of its own: what it is, and whether it can be used.
    func make(_ credential: Configuration.APNS.Credential) throws(CommandFailure) -> [LaneConfiguration] {
        var tokens: [SigningIdentity: TokenCache] = [:]
        return try lanes(of: credential, &tokens)
    }

    /// Whether one of the lanes serves `route`.
    func covers(_ route: Route) -> Bool {
        configuration.apns.credentials.contains { credential in
            credential.environments.contains { Self.covers(route, Set(credential.topics), $0) }
        }
    }

    /// What Apple counts tokens by.
    private struct SigningIdentity: Hashable {
        let keyID: String
        let teamID: String
    }

    private static func covers(_ route: Route, _ topics: Set<String>, _ environment: String) -> Bool {
        route.provider == "apns" && route.environment == environment && topics.contains(route.app)
    }

    private func lanes(
        of credential: Configuration.APNS.Credential, _ tokens: inout [SigningIdentity: TokenCache]
    ) throws(CommandFailure) -> [LaneConfiguration] {
        let identity = SigningIdentity(keyID: credential.keyID, teamID: credential.teamID)
        let cache: TokenCache
        if let shared = tokens[identity] { cache = shared } else { cache = try tokenCache(of: credential) }
        tokens[identity] = cache
        var lanes: [LaneConfiguration] = []
        for environment in APNSEnvironment.allCases where credential.environments.contains(environment.rawValue) {
            lanes.append(try lane(of: credential, environment, cache))
        }
        return lanes
    }

    /// The token cache of a credential, which has made its first token: the key is there and can sign.
    private func tokenCache(of credential: Configuration.APNS.Credential) throws(CommandFailure) -> TokenCache {
        guard let schedule = TokenSchedule(refreshAge: configuration.apns.tokenRefresh) else {
            throw CommandFailure(
                .configuration, what: "the age at which the provider token is made anew is out of range",
                place: "POSTBELL_APNS_JWT_REFRESH", next: "set it between 20m and 55m")
        }
        let tokens = TokenCache(
            file: credential.key, keyID: credential.keyID, teamID: credential.teamID, schedule: schedule)
        do throws(CredentialError) {
            _ = try tokens.token(now: .now)
        } catch {
            throw CommandFailure(error, place: credential.variable(.keyFile))
        }
        return tokens
    }

    private func lane(
        of credential: Configuration.APNS.Credential, _ environment: APNSEnvironment, _ tokens: TokenCache
    ) throws(CommandFailure) -> LaneConfiguration {
        let settings: APNSConfiguration
        do throws(APNSConfigurationError) {
            settings = try APNSConfiguration(
                environment: environment, keyID: credential.keyID, teamID: credential.teamID,
                topics: credential.topics, endpoint: replacementEndpoint,
                serverErrorDelay: configuration.apns.serverErrorDelay)
        } catch {
            throw CommandFailure(
                .configuration, what: error.description, place: "the APNs credential \(credential.name)",
                next: "correct its APNS_ setting")
        }
        let name = "apns/\(environment.rawValue)/\(credential.name)"
        var transport = HTTP2ClientConfiguration(
            host: settings.endpoint.host, port: settings.endpoint.port, configuration.connections)
        transport.capturedHeaders = APNSProvider.capturedHeaders
        return LaneConfiguration(
            description: LaneDescription(name: name, pause: configuration.apns.pause),
            serves: { [topics = Set(credential.topics)] route in
                Self.covers(route, topics, environment.rawValue)
            },
            transport: transport,
            provider: { [log] _ in
                APNSProvider(settings, tokens: tokens) { fault in
                    log.error("no provider token can be made", [.lane: .text(name), .cause: .text(fault.description)])
                }
            })
    }

    private var replacementEndpoint: APNSEndpoint? {
        configuration.apns.endpoint.map { APNSEndpoint(host: $0.host, port: UInt16($0.port)) }
    }
}

extension Configuration.APNS.Credential {
    /// The file of its key.
    var key: KeyFile {
        KeyFile(path: keyFile, credentialsDirectory: credentialsDirectory)
    }
}
