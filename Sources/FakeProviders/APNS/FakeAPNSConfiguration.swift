/// A key that the stand-in accepts provider tokens of.
package struct FakeAPNSKey: Equatable, Sendable {
    /// The token's `kid`.
    package let keyID: String
    /// The token's `iss`.
    package let teamID: String
    /// The public half as PEM.
    package let publicKeyPEM: String
    /// Bundle ids that this key may push to, as a topic-specific key; with none, those of the configuration.
    package var topics: Set<String> = []
    /// Whether the key is for the other environment: every push with it is refused.
    package var isOfOtherEnvironment = false

    /// A key that is known to the service.
    package init(keyID: String, teamID: String, publicKeyPEM: String) {
        self.keyID = keyID
        self.teamID = teamID
        self.publicKeyPEM = publicKeyPEM
    }
}

/// Where the line of JSON about each request goes.
package enum RequestLogTarget: Equatable, Sendable {
    /// Nowhere.
    case none
    /// To a file, which is emptied first.
    case file(String)
    /// To standard output.
    case standardOutput
}

/// How the stand-in for APNs behaves. The defaults are those of the real service as far as they are known.
package struct FakeAPNSConfiguration: Sendable {
    /// Numeric address to listen on.
    package var host = "127.0.0.1"
    /// Port; 0 lets the system choose.
    package var port: UInt16 = 0
    /// Certificate and key for TLS.
    package var identity: ServerIdentity
    /// Whether ALPN chooses `h2`; false imitates a server without HTTP/2.
    package var offersHTTP2 = true
    /// Keys whose provider tokens are accepted; with none, any token that can be read is accepted unverified.
    package var keys: [FakeAPNSKey] = []
    /// Bundle ids that may be pushed to; with none, all.
    package var topics: Set<String> = []
    /// Whether answers carry `apns-unique-id`, as in the development environment.
    package var isSandbox = false
    /// Streams that a client may have open once it has presented a valid token.
    package var streams: UInt32 = 1000
    /// Streams before that.
    package var streamsBeforeToken: UInt32 = 1
    /// Whether a rejected push lowers the stream limit to 1 until the next accepted one (seen at the real service).
    package var throttlesAfterRejection = false
    /// Whether a connection that presented an expired token refuses newer ones too (seen at the real service).
    package var wedgesAfterExpiredToken = true
    /// How old a provider token must be on a connection before another one may follow it (Apple: 20 minutes); sooner is
    /// a 429. Shorter speeds time up, nil allows any change.
    package var tokenUpdateInterval: Duration? = .seconds(20 * 60)
    /// Whether also that is refused which the real service is only known or supposed to refuse: see
    /// docs/fake-providers.md.
    package var isStrict = false
    /// Wait before the answer to a token with the prefix `fa003`.
    package var slowness = Duration.milliseconds(500)
    /// Time between the arrival of a request and the look at it; streams stay open meanwhile.
    package var delay = Duration.zero
    /// Misbehaviour by rate.
    package var rates = MisbehaviourRates()
    /// What every request with right headers is answered with; nil for what its token asks for.
    package var verdict: FakeAPNSVerdict?
    /// Whether it is counted how often each `apns-id` was accepted, for `FakeAPNS.accepts`.
    package var countsAccepts = false
    /// Where lines about requests go.
    package var log = RequestLogTarget.none
    /// How many requests are kept in memory for `FakeAPNS.requests`; 0 keeps none and costs nothing.
    package var keptRequests = 10_000

    /// The defaults with this identity.
    package init(identity: ServerIdentity) {
        self.identity = identity
    }
}

/// What the stand-in has counted since it started.
package struct FakeAPNSStatistics: Equatable, Sendable {
    /// Connections that finished their handshake.
    package var connections = 0
    /// Connections open now.
    package var openConnections = 0
    /// Whole requests.
    package var requests = 0
    /// Answers with status 200.
    package var accepted = 0
    /// Answers with another status.
    package var rejected = 0
    /// Requests that deliberately got no answer (silence, reset, closed connection).
    package var unanswered = 0
    /// Distinct pairs of `kid` and `iat` among valid tokens: how many provider tokens the clients have made.
    package var providerTokens = 0
    /// The most of them that were first seen within one hour with one key, by the service's clock.
    package var providerTokensInAnHour = 0
    /// Frames by which clients broke HTTP/2, for example a stream beyond a limit that they had acknowledged.
    package var protocolErrors = 0
    /// GOAWAYs sent.
    package var goAways = 0
    /// Changes of a connection's stream limit.
    package var limitChanges = 0

    /// Nothing counted.
    package init() {}
}

/// A request as it was seen, and what was done about it.
package struct SeenRequest: Equatable, Sendable {
    /// The connection's number, from 1.
    package let connection: Int
    /// The stream's id.
    package let stream: Int32
    /// `:method`.
    package let method: String
    /// `:path`.
    package let path: String
    /// The device token: what follows `/3/device/`.
    package let token: String
    /// Headers by name; the bearer without its signature.
    package let headers: [String: String]
    /// The body.
    package let body: String
    /// The provider token's `kid`, if it could be read.
    package let keyID: String?
    /// The provider token's `iat`, if it could be read.
    package let issuedAt: Int64?
    /// The status answered; 0 when none was.
    package let status: Int
    /// The reason answered, or what was done instead of an answer; empty for 200.
    package let reason: String
}
