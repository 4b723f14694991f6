import EventLoop
import HTTP2
import Testing

/// Connecting only to see whether one can.
@Suite struct HandshakeTests {
    private func attempt(port: UInt16, connectTimeout: Duration = .seconds(10)) async throws -> HTTP2Handshake {
        let loop = EventLoop.startThread(name: "handshake-test")
        defer { loop.stop() }
        var configuration = HTTP2ClientConfiguration(host: "127.0.0.1", port: port)
        configuration.caFile = TestCertificates.shared.caFile
        configuration.connectTimeout = connectTimeout
        return try await HTTP2Handshake.attempt(configuration, on: loop)
    }

    @Test func aPeerThatSpeaksHTTP2IsFoundWithoutARequest() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.drain()
        }
        let handshake = try await attempt(port: server.port)
        server.stop()
        #expect(handshake.streams > 0)
        #expect(handshake.duration > .zero)
        #expect(server.connections == 1)
        // The preface and SETTINGS, at most 24 + 9 + some parameters of 6 bytes; a request would not fit in.
        #expect(server.requestBytes < 100)
    }

    @Test func aPeerThatDoesNotIsNamedWithItsFault() async throws {
        let server = try ScriptedServer(ServerTLS(offersHTTP2: false)) { connection in
            connection.drain()
        }
        let error = await #expect(throws: HTTP2ConnectionError.self) { try await attempt(port: server.port) }
        server.stop()
        #expect(error?.code == .noHTTP2)
    }

    /// TLS is there and `h2` agreed on, but the peer's SETTINGS never come.
    @Test func aPeerWithoutSettingsCostsTheConnectTimeout() async throws {
        let server = try ScriptedServer { connection in connection.drain() }
        let error = await #expect(throws: HTTP2ConnectionError.self) {
            try await attempt(port: server.port, connectTimeout: .seconds(1))
        }
        server.stop()
        #expect(error?.code == .connectTimeout)
    }
}
