package import EventLoop

/// A stand-in for Google's OAuth token endpoint (`POST /token`): real TLS, real HTTP/2, real signatures.
///
/// Runs on the given loop, together with whatever else runs there.
package actor FakeTokenEndpoint {
    private let loop: EventLoop
    private let server: TokenEndpointServer

    /// Where the service listens; nil until `start` and after `stop`.
    package private(set) var port: UInt16?

    /// A service that does not listen yet. Throws when certificate, keys or log file cannot be used.
    package init(_ configuration: FakeTokenEndpointConfiguration, on loop: EventLoop) throws(FakeServerError) {
        self.loop = loop
        server = try TokenEndpointServer(configuration, on: loop)
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Starts to listen and answers the port.
    @discardableResult
    package func start() throws(FakeServerError) -> UInt16 {
        let port = try server.start()
        self.port = port
        return port
    }

    /// Closes the listening socket and all connections at once.
    package func stop() {
        server.stop()
        port = nil
    }

    /// The requests so far, in the order of their arrival; never with the assertion. `keyID` and `issuedAt` are its
    /// `kid` and `iat`.
    package var requests: [SeenRequest] { server.seen }

    /// What was counted so far.
    package var statistics: FakeTokenEndpointStatistics { server.statistics }

    /// Waits until `count` requests have arrived, `limit` at most, and answers those seen then.
    package func requests(reaching count: Int, within limit: Duration = .seconds(10)) async -> [SeenRequest] {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            server.host.wait(for: count, seen: server.statistics.requests, until: .now + limit) {
                continuation.resume()
            }
        }
        return server.seen
    }

    /// Answers the next `times` good requests with `answer`; for ever when nil.
    package func misbehave(_ answer: TokenEndpointAnswer, times: Int? = nil) {
        server.misbehaviour = (answer, times ?? Int.max)
    }

    /// Ends what `misbehave` began.
    package func behave() {
        server.misbehaviour = nil
    }

    /// Plays the token endpoint's part of `scenario` from now on, instead of what was played before.
    package func play(_ scenario: Scenario) {
        server.play(scenario)
    }

    /// Sets the service's clock `seconds` ahead of the system's; negative sets it back.
    package func setClock(ahead seconds: Int64) {
        server.clock.offset = seconds
    }

    /// Sets the life of the access tokens that are issued from now on, in seconds.
    package func setLifetime(_ seconds: Int64) {
        server.configuration.lifetime = seconds
    }

    /// Replaces the accounts: an account that is left out is deleted, one with another key has rotated it.
    package func setAccounts(_ accounts: [FakeServiceAccount]) throws(FakeServerError) {
        try server.setAccounts(accounts)
    }

    /// Closes all connections without a word, as a broken network does.
    package func dropConnections() {
        server.host.dropConnections()
    }
}
