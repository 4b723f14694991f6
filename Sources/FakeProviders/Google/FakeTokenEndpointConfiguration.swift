/// How the stand-in for Google's token endpoint behaves. The defaults are those of the real service.
package struct FakeTokenEndpointConfiguration: Sendable {
    /// Numeric address to listen on.
    package var host = "127.0.0.1"
    /// Port; 0 lets the system choose.
    package var port: UInt16 = 0
    /// Certificate and key for TLS.
    package var identity: ServerIdentity
    /// Accounts whose assertions are accepted.
    package var accounts: [FakeServiceAccount] = []
    /// What `aud` may be: Google's own address, wherever the stand-in listens.
    package var audiences: Set<String> = [ServiceAccountFile.tokenURI]
    /// Life of an access token in seconds, as `expires_in` says and as FCM keeps to.
    package var lifetime: Int64 = 3599
    /// Whether `expires_in` is written as a string, as some services do.
    package var writesExpiryAsString = false
    /// The tokens that are issued; give the same object to `FakeFCMConfiguration`.
    package var accessTokens = FakeAccessTokens()
    /// Where lines about requests go.
    package var log = RequestLogTarget.none
    /// How many requests are kept in memory for `FakeTokenEndpoint.requests`; 0 keeps none.
    package var keptRequests = 10_000

    /// The defaults with this identity.
    package init(identity: ServerIdentity) {
        self.identity = identity
    }
}

/// What the token endpoint has counted since it started.
package struct FakeTokenEndpointStatistics: Equatable, Sendable {
    /// Connections that were taken.
    package var connections = 0
    /// Connections open now.
    package var openConnections = 0
    /// Whole requests.
    package var requests = 0
    /// Access tokens handed out.
    package var granted = 0
    /// Answers without one.
    package var refused = 0
    /// Requests that deliberately got no answer.
    package var unanswered = 0
    /// Distinct assertions whose signature was right: how many the clients have signed.
    package var assertions = 0

    /// Nothing counted.
    package init() {}
}
