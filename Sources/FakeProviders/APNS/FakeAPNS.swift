package import EventLoop

/// A stand-in for Apple's push service: real TLS, real HTTP/2, its rules and its moods. For tests, demos and benches.
///
/// Runs on the given loop, together with whatever else runs there.
package actor FakeAPNS {
    private let loop: EventLoop
    private let server: APNSServer

    /// Where the service listens; nil until `start` and after `stop`.
    package private(set) var port: UInt16?

    /// A service that does not listen yet. Throws when certificate, keys or log file cannot be used.
    package init(_ configuration: FakeAPNSConfiguration, on loop: EventLoop) throws(FakeServerError) {
        self.loop = loop
        server = try APNSServer(configuration, on: loop)
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

    /// The requests so far, in the order of their arrival, as many as the configuration keeps.
    package var requests: [SeenRequest] { server.seen }

    /// What was counted so far.
    package var statistics: FakeAPNSStatistics { server.statistics }

    /// How often each `apns-id` was accepted, where the configuration counts that.
    package var accepts: [String: Int] { server.accepts }

    /// Requests that have arrived and were not looked at.
    package var waiting: Int { server.waiting }

    /// Waits until `count` requests have arrived, `limit` at most, and answers those seen then.
    package func requests(reaching count: Int, within limit: Duration = .seconds(10)) async -> [SeenRequest] {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            server.host.wait(for: count, seen: server.statistics.requests, until: .now + limit) {
                continuation.resume()
            }
        }
        return server.seen
    }

    /// Plays the part of APNs in `scenario` from now on, instead of what was played before.
    package func play(_ scenario: Scenario) {
        server.play(scenario)
    }

    /// Sets the service's clock `seconds` ahead of the system's; negative sets it back.
    package func setClock(ahead seconds: Int64) {
        server.clock.offset = seconds
    }

    /// Answers every request whose headers are right with `verdict` from now on; nil: as its token asks for.
    package func answerAll(with verdict: FakeAPNSVerdict?) {
        server.verdict = verdict
    }

    /// Looks at no request from now on until `resumeAnswering`.
    package func holdAnswers() {
        server.hold(true)
    }

    /// Looks at so many of the requests that wait, oldest first, and goes on holding the others.
    package func answer(oldest count: Int) {
        server.answer(oldest: count)
    }

    /// Takes `holdAnswers` back.
    package func resumeAnswering() {
        server.hold(false)
    }

    /// Closes all connections without a word, as a broken network does.
    package func dropConnections() {
        server.host.dropConnections()
    }

    /// Sends GOAWAY on all connections: streams above `lastStream` were not looked at.
    package func goAway(lastStream: Int32 = Int32.max, debugData: String = "{\"reason\":\"Shutdown\"}") {
        server.goAway(lastStream: lastStream, debugData: Array(debugData.utf8))
    }

    /// Announces a new limit of concurrent streams on all connections.
    package func setStreamLimit(_ limit: UInt32) {
        server.setStreamLimit(limit)
    }
}
