/// How the stand-in for FCM behaves. The defaults are those of the real service as far as they are known.
package struct FakeFCMConfiguration: Sendable {
    /// Numeric address to listen on.
    package var host = "127.0.0.1"
    /// Port; 0 lets the system choose.
    package var port: UInt16 = 0
    /// Certificate and key for TLS.
    package var identity: ServerIdentity
    /// The access tokens that a `FakeTokenEndpoint` has issued; nil accepts any bearer for any project.
    package var accessTokens: FakeAccessTokens?
    /// Projects that exist; with none, all.
    package var projects: Set<String> = []
    /// Whether bodies are held to Google's schema: unknown fields, types, durations, reserved keys, sizes.
    package var isStrict = true
    /// Streams that a client may have open; one more ends the connection.
    package var streams: UInt32 = 100
    /// Time between the arrival of a request and the look at it; streams stay open meanwhile.
    package var delay = Duration.zero
    /// Misbehaviour by rate.
    package var rates = MisbehaviourRates()
    /// Wait before the answer to a token with the prefix `fa003` or `fa-slow`.
    package var slowness = Duration.milliseconds(500)
    /// Where lines about requests go.
    package var log = RequestLogTarget.none
    /// How many requests are kept in memory for `FakeFCM.requests`; 0 keeps none and costs nothing.
    package var keptRequests = 10_000

    /// The defaults with this identity.
    package init(identity: ServerIdentity) {
        self.identity = identity
    }
}

/// What the stand-in for FCM has counted since it started.
package struct FakeFCMStatistics: Equatable, Sendable {
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
    /// Requests that deliberately got no answer.
    package var unanswered = 0
    /// Frames by which clients broke HTTP/2, for example a stream beyond the limit.
    package var protocolErrors = 0
    /// GOAWAYs sent.
    package var goAways = 0

    /// Nothing counted.
    package init() {}
}
