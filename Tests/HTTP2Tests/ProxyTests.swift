import EventLoop
import Foundation
import Testing

@testable import HTTP2

/// Connections through an HTTP proxy, by CONNECT (RFC 9110 9.3.6).
@Suite struct ProxyTests {
    private static func server() throws -> ScriptedServer {
        try ScriptedServer { connection in
            try connection.begin()
            while true { connection.respond(try connection.nextRequest().stream) }
        }
    }

    @Test func requestsGoThroughTheTunnelAndTheProxyLooksUpTheHost() async throws {
        let server = try Self.server()
        let proxy = try ScriptedProxy.honest()
        let asked = Guarded<[String]>([])
        try await ClientHarness.run(port: server.port) {
            $0.host = "localhost"
            $0.proxy = try HTTPProxy(url: "http://127.0.0.1:\(proxy.port)")
        } lookUp: { host, port, loop in
            asked.withLock { $0.append("\(host):\(port)") }
            return try await Resolver.addresses(of: host, port: port, on: loop)
        } _: { harness in
            await harness.submit(20)
            let results = try await harness.results(20)
            #expect(results.allSatisfy { $0.status == 200 })
        }
        proxy.stop()
        server.stop()
        let target = "localhost:\(server.port)"
        #expect(proxy.requests == ["CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n"])
        #expect(asked.withLock { $0 } == ["127.0.0.1:\(proxy.port)"], "the host's name is the proxy's matter")
        #expect(server.connections == 1)
        #expect(server.failures.isEmpty)
    }

    @Test func userAndPasswordAreShownToTheProxyAlone() async throws {
        let server = try Self.server()
        let proxy = try ScriptedProxy.honest()
        try await ClientHarness.run(port: server.port) {
            $0.proxy = try HTTPProxy(url: "http://Aladdin:open%20sesame@127.0.0.1:\(proxy.port)")
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].status == 200)
        }
        proxy.stop()
        server.stop()
        let lines = proxy.requests.first?.components(separatedBy: "\r\n") ?? []
        #expect(lines.contains("Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="))
    }

    @Test func theHostIsVerifiedThroughTheTunnel() async throws {
        let other = CertificateTemplate("other.example", alternative: "DNS:other.example")
        let tls = ServerTLS(credential: other.issued(by: TestCertificates.shared.authority))
        let server = try ScriptedServer(tls) { $0.drain() }
        let proxy = try ScriptedProxy.honest()
        try await ClientHarness.run(port: server.port) {
            $0.proxy = try HTTPProxy(url: "http://127.0.0.1:\(proxy.port)")
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].fault == .notSent(.noConnection))
            #expect(await harness.downCode == .wrongHost)
        }
        proxy.stop()
        server.stop()
        #expect(server.requestBytes == 0)
    }

    struct Refusal: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: HTTP2ConnectionError.Code
        let reason: String
        let act: @Sendable (ProxyConnection) -> Void

        init(
            _ name: String, _ code: HTTP2ConnectionError.Code, _ reason: String,
            _ act: @escaping @Sendable (ProxyConnection) -> Void
        ) {
            testDescription = name
            self.code = code
            self.reason = reason
            self.act = act
        }
    }

    static let refusals = [
        Refusal("407", .proxyAuthentication, "the proxy refuses: 407 Proxy Authentication Required; check the proxy's")
        {
            // What a proxy that is angry might say.
            $0.write("HTTP/1.1 407 no such user: canary\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n")
        },
        Refusal("407 without an end", .proxyAuthentication, "the proxy refuses: 407") {
            $0.write("HTTP/1.0 407 Nope\r\nX: ")
            $0.drain()
        },
        Refusal("403", .proxy, "the proxy refuses: 403 Forbidden; check that it may open tunnels") {
            $0.write("HTTP/1.1 403 Y2FuYXJ5OnNlY3JldA==\r\n\r\n")
        },
        Refusal("502", .proxy, "the proxy refuses: 502 Bad Gateway") { $0.write("HTTP/1.1 502\r\n\r\n") },
        Refusal("302", .proxy, "the proxy refuses: status 302") {
            $0.write("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n")
        },
        Refusal("an upgrade", .proxy, "the proxy refuses: status 101") { $0.write("HTTP/1.1 101 Sure\r\n\r\n") },
        Refusal("garbage", .proxy, "makes no sense: it is not HTTP/1.1") {
            $0.write([UInt8](repeating: 0xFF, count: 100))
            $0.drain()
        },
        Refusal("HTTP/2", .proxy, "makes no sense: it is not HTTP/1.1") {
            $0.write([0, 0, 0, 4, 0, 0, 0, 0, 0])
            $0.drain()
        },
        Refusal("a header without end", .proxy, "makes no sense: it is longer than 16384 bytes") {
            $0.write("HTTP/1.1 200 OK\r\n" + String(repeating: "x", count: 1 << 20))
            $0.drain()
        },
        Refusal("headers without end", .proxy, "makes no sense: it is longer than 16384 bytes") {
            $0.write("HTTP/1.1 200 OK\r\n" + String(repeating: "a: b\r\n", count: 100_000))
            $0.drain()
        },
        Refusal("interim answers without end", .proxy, "makes no sense: it is longer than 16384 bytes") {
            $0.write(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 10_000))
            $0.drain()
        },
        Refusal("closed at once", .proxy, "closed the connection before it answered") { _ in },
        Refusal("closed amidst", .proxy, "closed the connection before it answered") { $0.write("HTTP/1.1 20") },
        Refusal("half closed", .proxy, "closed the connection before it answered") {
            $0.endWriting()
            $0.drain()
        },
        Refusal("silent", .connectTimeout, "the proxy has not answered") { $0.drain() },
        Refusal("stalled", .connectTimeout, "the proxy has not answered") {
            $0.write("HTTP/1.1 200 OK\r\nA: b\r\n")
            $0.drain()
        },
    ]

    @Test(arguments: refusals)
    func aProxyThatOpensNoTunnelIsNamedAndNothingIsSent(refusal: Refusal) async throws {
        let proxy = try ScriptedProxy { refusal.act($0) }
        try await ClientHarness.run(port: 443) {
            $0.host = "api.example"
            $0.proxy = try HTTPProxy(url: "http://canary:secret@127.0.0.1:\(proxy.port)")
            if refusal.code == .connectTimeout { $0.connectTimeout = .milliseconds(500) }
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].fault == .notSent(.noConnection))
            #expect(await harness.downCode == refusal.code)
            let reason = await harness.downReasons.last ?? ""
            #expect(reason.contains(refusal.reason), "\(reason)")
            #expect(reason.contains("api.example:443 through the proxy 127.0.0.1"), "\(reason)")
            for secret in ["canary", "secret", "Y2FuYXJ5OnNlY3JldA"] {
                #expect(!reason.contains(secret), "\(secret) is shown")
            }
        }
        proxy.stop()
        #expect(proxy.bytesBehindRequests == 0)
    }

    @Test func withoutAUserTheProxyThatWantsOneIsToldApart() async throws {
        let proxy = try ScriptedProxy { $0.write("HTTP/1.1 407 X\r\n\r\n") }
        try await ClientHarness.run(port: 443) {
            $0.proxy = try HTTPProxy(url: "http://127.0.0.1:\(proxy.port)")
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            #expect(await harness.downReasons.last?.hasSuffix("; it asks for a user and password") == true)
        }
        proxy.stop()
    }

    @Test func aProxyThatDoesNotListenIsNamed() async throws {
        let (descriptor, port) = try ScriptedServer.listen()
        Glibc.close(descriptor)
        try await ClientHarness.run(port: 443) {
            $0.host = "api.example"
            $0.proxy = try HTTPProxy(url: "http://127.0.0.1:\(port)")
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            #expect(
                await harness.downReasons.last
                    == "connection to api.example:443 through the proxy 127.0.0.1 (127.0.0.1:\(port)): connect: "
                    + "Connection refused")
        }
    }

    @Test func aProxyWithoutAnAddressIsNamed() async throws {
        try await ClientHarness.run(port: 443) {
            $0.host = "api.example"
            $0.proxy = try HTTPProxy(url: "http://no-such-proxy.invalid:3128")
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            #expect(await harness.downCode == .nameResolution)
            #expect(await harness.downReasons.last?.contains("no-such-proxy.invalid: ") == true)
        }
    }

    static let answers: [(text: String, verdict: ProxyAnswer.Verdict, left: Int)] = [
        ("HTTP/1.1 200 OK\r\n\r\n", .open, 0),
        ("HTTP/1.0 299\r\nContent-Length: 5\r\n\r\nTLS!!", .open, 5),
        ("HTTP/1.1 200 OK\nA: b\n\n\u{16}\u{03}", .open, 2),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 204 \r\n\r\nx", .open, 1),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", .incomplete, 0),
        ("HTTP/1.1 2000 OK\r\n", .malformed("it is not HTTP/1.1"), 5),
        ("HTTP/1.1 20\r\n\r\n", .malformed("it is not HTTP/1.1"), 2),
        ("HTTP/1.1  200 OK\r\n\r\n", .malformed("it is not HTTP/1.1"), 10),
        ("HTTP/2.0 200 OK\r\n\r\n", .malformed("it is not HTTP/1.1"), 13),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", .malformed("it is not HTTP/1.1"), 19),
        ("HTTP/1.1 200 OK\r\n\u{0}\r\n\r\n", .malformed("it is not HTTP/1.1"), 4),
        ("HTTP/1.1 000 OK\r\n\r\n", .refused(status: 0), 2),
        ("HTTP/1.1 999 OK\r\n\r\n", .refused(status: 999), 2),
    ]

    @Test(arguments: answers)
    func anAnswerIsReadUpToItsEndInOnePieceOrByteByByte(
        text: String, verdict: ProxyAnswer.Verdict, left: Int
    ) {
        let bytes = Array(text.utf8)
        var whole = ProxyAnswer()
        let used = bytes.withUnsafeBufferPointer { whole.take($0) }
        #expect(whole.verdict == verdict)
        #expect(bytes.count - used == left)
        var single = ProxyAnswer()
        var taken = 0
        for byte in bytes {
            taken += withUnsafePointer(to: byte) { single.take(UnsafeBufferPointer(start: $0, count: 1)) }
        }
        #expect(single.verdict == verdict)
        #expect(taken == used)
    }

    @Test func whatFollowsTheAnswerBelongsToTLS() async throws {
        // The proxy sends its answer and what TLS will read as a record, a fatal alert, in one piece.
        let proxy = try ScriptedProxy { connection in
            connection.write(Array("HTTP/1.1 200 OK\r\n\r\n".utf8) + [21, 3, 3, 0, 2, 2, 70])
            connection.drain()
        }
        try await ClientHarness.run(port: 443) {
            $0.proxy = try HTTPProxy(url: "http://127.0.0.1:\(proxy.port)")
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            // Alert 70 is protocol_version (RFC 8446 6), so TLS has seen it.
            #expect(await harness.downCode == .tlsVersion)
        }
        proxy.stop()
    }
}
