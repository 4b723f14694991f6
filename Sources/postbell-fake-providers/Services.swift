import EventLoop
import FakeProviders

/// The stand-ins that the command line asks for.
struct Services {
    let apns: FakeAPNS
    let fcm: FakeFCM?
    let tokenEndpoint: FakeTokenEndpoint?

    /// Makes certificates, keys and accounts as the command line wants them, and starts nothing. Throws
    /// `FakeServerError`.
    init(_ arguments: Arguments, on loop: EventLoop) throws {
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: arguments.certificates)
        apns = try FakeAPNS(Self.apnsConfiguration(arguments, identity), on: loop)
        var accounts = try arguments.accountFiles.map { try ServiceAccountFile.account(at: $0) }
        if arguments.makesAccount {
            let path = arguments.certificates + "/service-account.json"
            accounts.append(try ServiceAccountFile.make(at: path, projectID: arguments.project))
        }
        let tokens = FakeAccessTokens()
        tokenEndpoint = try arguments.tokenEndpoint.map { address in
            var configuration = FakeTokenEndpointConfiguration(identity: identity)
            configuration.host = address.host
            configuration.port = address.port
            configuration.accounts = accounts
            configuration.accessTokens = tokens
            configuration.log = arguments.log
            configuration.keptRequests = 0
            return try FakeTokenEndpoint(configuration, on: loop)
        }
        let issuesTokens = tokenEndpoint != nil
        fcm = try arguments.fcm.map { address in
            var configuration = FakeFCMConfiguration(identity: identity)
            configuration.host = address.host
            configuration.port = address.port
            configuration.accessTokens = issuesTokens ? tokens : nil
            configuration.isStrict = arguments.isStrict
            configuration.slowness = arguments.slowness
            configuration.log = arguments.log
            configuration.keptRequests = 0
            return try FakeFCM(configuration, on: loop)
        }
    }

    /// Starts all and answers their ports by the names that they have in the first line of output.
    func start() async throws -> [(name: String, port: UInt16)] {
        var ports: [(String, UInt16)] = [("port", try await apns.start())]
        if let fcm { ports.append(("fcm_port", try await fcm.start())) }
        if let tokenEndpoint { ports.append(("token_port", try await tokenEndpoint.start())) }
        return ports
    }

    /// Gives all of them `scenario` to play.
    func play(_ scenario: Scenario) async {
        await apns.play(scenario)
        await fcm?.play(scenario)
        await tokenEndpoint?.play(scenario)
    }

    /// Stops all, and answers what was counted as members of a JSON object.
    func stop() async -> String {
        let found = await apns.statistics
        await apns.stop()
        var summary = """
            "connections":\(found.connections),"requests":\(found.requests),"accepted":\(found.accepted),\
            "rejected":\(found.rejected),"unanswered":\(found.unanswered),"provider_tokens":\(found.providerTokens),\
            "provider_tokens_in_an_hour":\(found.providerTokensInAnHour),"protocol_errors":\(found.protocolErrors)
            """
        if let fcm {
            let found = await fcm.statistics
            await fcm.stop()
            summary += """
                ,"fcm":{"connections":\(found.connections),"requests":\(found.requests),"accepted":\(found.accepted),\
                "rejected":\(found.rejected),"unanswered":\(found.unanswered),\
                "protocol_errors":\(found.protocolErrors)}
                """
        }
        if let tokenEndpoint {
            let found = await tokenEndpoint.statistics
            await tokenEndpoint.stop()
            summary += """
                ,"token":{"connections":\(found.connections),"requests":\(found.requests),"granted":\(found.granted),\
                "refused":\(found.refused),"unanswered":\(found.unanswered),"assertions":\(found.assertions)}
                """
        }
        return summary
    }

    private static func apnsConfiguration(
        _ arguments: Arguments, _ identity: ServerIdentity
    ) throws -> FakeAPNSConfiguration {
        var configuration = FakeAPNSConfiguration(identity: identity)
        let made = arguments.certificates + "/apns.p8"
        if arguments.makesKey { try IdentityFiles.makeProviderKey(at: made) }
        if let path = arguments.makesKey ? made : arguments.keyFile {
            configuration.keys = [
                try IdentityFiles.providerKey(at: path, keyID: arguments.keyID, teamID: arguments.teamID)
            ]
        }
        configuration.host = arguments.apns.host
        configuration.port = arguments.apns.port
        configuration.topics = arguments.topics
        configuration.streams = arguments.streams
        configuration.streamsBeforeToken = arguments.streamsBeforeToken
        configuration.isSandbox = arguments.isSandbox
        configuration.isStrict = arguments.isStrict
        configuration.throttlesAfterRejection = arguments.throttles
        configuration.tokenUpdateInterval = arguments.tokenUpdateInterval
        configuration.slowness = arguments.slowness
        configuration.log = arguments.log
        configuration.keptRequests = 0
        return configuration
    }
}
