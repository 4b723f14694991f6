import Foundation
import HTTP2
import Testing

/// *Not sent* and *unanswered* told apart for every way in which a connection can die, against the server's own record.
///
/// The invariant: a request the server has acted on is never called *not sent*, and is never sent again by the client.
@Suite struct ConnectionDeathTests {
    static let early = [
        Death(testDescription: "connection refused", ends: [.notSent(.noConnection)], acted: []) { _ in try NoServer()
        },
        Death.raw("closed before TLS") { _, _ in },
        Death.raw("reset before TLS") { client, _ in resetOnClose(client) },
        Death.raw("closed in the handshake") { _, read in _ = read() },
        Death.raw("reset in the handshake") { client, read in
            _ = read()
            resetOnClose(client)
        },
        Death.raw("connect timeout in the handshake") { _, read in while read() > 0 {} }.with(impatience),
        Death.scripted("closed before SETTINGS", [.notSent(.noConnection)], acted: []) { connection, _ in
            try connection.expectPreface()
        },
        Death.scripted("reset before SETTINGS", [.notSent(.noConnection)], acted: []) { connection, _ in
            try connection.expectPreface()
            throw connection.abort()
        },
        Death.scripted("no SETTINGS at all", [.notSent(.noConnection)], acted: []) { connection, _ in
            try connection.expectPreface()
            connection.drain()
        }.with(impatience),
        Death.scripted("GOAWAY in place of SETTINGS", [.notSent(.noConnection)], acted: []) { connection, _ in
            try connection.expectPreface()
            connection.goAway(last: 0, code: 11)
            connection.drain()
        },
    ]

    static let goAways = [
        Death.scripted(
            "GOAWAY below two of three, then closed", [.unanswered(.connectionLost), .answered(200), .answered(200)],
            acted: [1, 2, 3]
        ) { connection, record in
            try connection.begin()
            if connection.number == 1 {
                let requests = try connection.requests(3)
                record.act(requests[0])
                return connection.goAway(last: 1)
            }
            try serve(connection, record)
        },
        Death.scripted("GOAWAY with NO_ERROR that covers it, then closed", lost, acted: [1]) { connection, record in
            try connection.begin()
            record.act(try connection.nextRequest())
            connection.goAway(last: 1)
        },
        Death.scripted("GOAWAY with an error that covers all, then reset", lost, acted: [1]) { connection, record in
            try connection.begin()
            record.act(try connection.nextRequest())
            connection.goAway(last: 0x7FFF_FFFF, code: 11)
            try connection.synchronize()
            throw connection.abort()
        },
        Death.scripted("GOAWAY below it, again and again", [.notSent(.goneAway)], acted: []) { connection, _ in
            try connection.begin()
            _ = try connection.nextRequest()
            connection.goAway(last: 0)
            connection.drain()
        }.with {
            $0.backoffFirst = .milliseconds(1)
            $0.backoffMax = .milliseconds(1)
        },
        Death.scripted(
            "GOAWAY below a stream whose answer has begun", [.unanswered(.goneAway)], acted: [1]
        ) { connection, record in
            try connection.begin()
            let request = try connection.nextRequest()
            record.act(request)
            connection.send(connection.headers(request.stream, [(":status", "200")], end: false))
            connection.goAway(last: 0)
            connection.drain()
        },
    ]

    static let resets =
        [
            Death.scripted("REFUSED_STREAM three times", [.notSent(.refusedStream)], acted: []) { connection, _ in
                try connection.begin()
                for _ in 0..<3 { connection.reset(try connection.nextRequest().stream, 7) }
                connection.drain()
            },
            Death.scripted("REFUSED_STREAM, then lost", lost, acted: [1]) { connection, record in
                try connection.begin()
                connection.reset(try connection.nextRequest().stream, 7)
                record.act(try connection.nextRequest())
            },
            Death.scripted("REFUSED_STREAM after the answer has begun", reset, acted: [1]) { connection, record in
                try connection.begin()
                let request = try connection.nextRequest()
                record.act(request)
                connection.send(connection.headers(request.stream, [(":status", "200")], end: false))
                connection.reset(request.stream, 7)
                try serve(connection, record)
            },
            Death.scripted("REFUSED_STREAM after an interim answer", reset, acted: [1]) { connection, record in
                try connection.begin()
                let request = try connection.nextRequest()
                record.act(request)
                connection.send(connection.headers(request.stream, [(":status", "103")], end: false))
                connection.reset(request.stream, 7)
                try serve(connection, record)
            },
            Death.scripted("reset within the answer's body", reset, acted: [1]) { connection, record in
                try connection.begin()
                let request = try connection.nextRequest()
                record.act(request)
                connection.send(connection.headers(request.stream, [(":status", "200")], end: false))
                try connection.sendBody(request.stream, count: 100, end: false)
                connection.reset(request.stream, 2)
                connection.drain()
            },
        ]
        + [UInt32](0...13).filter { $0 != 7 }.map { code in
            Death.scripted("reset with code \(code)", reset, acted: [1]) { connection, record in
                try connection.begin()
                let request = try connection.nextRequest()
                record.act(request)
                connection.reset(request.stream, code)
                try serve(connection, record)
            }
        }

    private static let lost: [Death.End] = [.unanswered(.connectionLost)]
    private static let reset: [Death.End] = [.unanswered(.reset)]

    static let impatience: @Sendable (inout HTTP2ClientConfiguration) -> Void = {
        $0.connectTimeout = .milliseconds(500)
    }

    /// Acts on and answers whatever comes.
    static func serve(_ connection: ServerConnection, _ record: ActRecord) throws {
        while true {
            let request = try connection.nextRequest()
            record.act(request)
            connection.respond(request.stream)
        }
    }

    private static func resetOnClose(_ descriptor: Int32) {
        var noLinger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &noLinger, socklen_t(MemoryLayout<linger>.size))
    }

    @Test(arguments: early + goAways + resets + late + ours + withoutTunnel + withinTunnel)
    func whatTheServerActedOnIsNeverCalledNotSent(_ death: Death) async throws {
        let record = ActRecord()
        let server = try death.start(record)
        defer { server.stop() }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 1
            if let proxied = server as? ProxiedServer {
                $0.proxy = try HTTPProxy(url: "http://127.0.0.1:\(proxied.proxy.port)")
            }
            death.change(&$0)
        } _: { harness in
            if let act = death.act { try await act(harness, record) } else { await harness.submit(death.ends.count) }
            let results = try await harness.results(death.ends.count).sorted { $0.tag < $1.tag }
            #expect(results.map(Death.End.init) == death.ends)
            for result in results {
                if case .failure(.notSent) = result.outcome {
                    #expect(!result.wasSent)
                } else {
                    #expect(result.wasSent)
                }
            }
        }
        let acts = record.acts
        #expect(Set(acts.keys) == Set(death.acted.map { "id-\($0)" }))
        #expect(acts.values.allSatisfy { $0 == 1 }, "nothing goes out twice")
    }
}
