import HTTP2
import Testing

/// A way to break HTTP/2.
struct Violation: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let act: @Sendable (ServerConnection, Int32) -> Void

    init(_ name: String, _ act: @escaping @Sendable (ServerConnection, Int32) -> Void) {
        testDescription = name
        self.act = act
    }
}

@Suite struct MalformedPeerTests {
    /// What must end the connection.
    static let fatal = [
        Violation("garbage") { connection, _ in connection.sendRaw([UInt8](repeating: 0xFF, count: 200)) },
        Violation("DATA on an idle stream") { connection, _ in connection.send(Frame(type: Frame.data, stream: 99)) },
        Violation("HEADERS on an even stream") { connection, _ in
            connection.send(connection.headers(2, [(":status", "200")], end: true))
        },
        Violation("PUSH_PROMISE though push is off") { connection, stream in
            connection.send(Frame(type: 5, flags: 4, stream: stream, payload: [0, 0, 0, 2]))
        },
        Violation("a frame above the size we allow") { connection, stream in
            let payload = [UInt8](repeating: 0, count: 16_385)
            connection.send(Frame(type: Frame.data, stream: stream, payload: payload))
        },
        Violation("SETTINGS of a wrong size") { connection, _ in
            connection.send(Frame(type: Frame.settings, payload: [0, 3, 0]))
        },
        Violation("WINDOW_UPDATE beyond the largest window") { connection, _ in
            connection.sendWindow(0, 0x7FFF_FFFF)
        },
        Violation("padding longer than the frame") { connection, stream in
            connection.send(Frame(type: Frame.data, flags: 8, stream: stream, payload: [200, 1, 2]))
        },
        Violation("HPACK that means nothing") { connection, stream in
            connection.send(
                Frame(type: Frame.headers, flags: 5, stream: stream, payload: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF]))
        },
        Violation("a megabyte of headers") { connection, stream in
            let value = String(repeating: "x", count: 8000)
            let fields = [(":status", "200")] + (0..<120).map { ("h\($0)", value) }
            sendInPieces(connection, stream, ServerConnection.block(fields))
        },
        Violation("ten thousand headers") { connection, stream in
            let fields = [(":status", "200")] + (0..<10_000).map { ("h\($0)", "") }
            sendInPieces(connection, stream, ServerConnection.block(fields))
        },
        Violation("an HPACK bomb") { connection, stream in
            // One entry of the dynamic table, named over and over: 3 KB become 9 MB.
            let value = String(repeating: "x", count: 3000)
            let entry = [0x40] + ServerConnection.block([("bomb", value)]).dropFirst()
            let block = [0x88] + entry + [UInt8](repeating: 0xBE, count: 3000)
            sendInPieces(connection, stream, Array(block))
        },
        Violation("CONTINUATION without end") { connection, stream in
            connection.send(Frame(type: Frame.headers, stream: stream, payload: [0x88]))
            for _ in 0..<2000 { connection.send(Frame(type: Frame.continuation, stream: stream)) }
        },
        Violation("a flood of PINGs that asks for ACKs") { connection, _ in
            let ping = Frame(type: Frame.ping, payload: [UInt8](repeating: 0, count: 8))
            for _ in 0..<20 { connection.send(ping) }
            connection.sendRaw([1])
            connection.finish()
        },
    ]

    private static func sendInPieces(_ connection: ServerConnection, _ stream: Int32, _ block: [UInt8]) {
        var rest = block[...]
        var type = Frame.headers
        while !rest.isEmpty {
            let piece = Array(rest.prefix(16_000))
            rest = rest.dropFirst(16_000)
            let flags = rest.isEmpty ? Frame.endHeaders : 0
            connection.send(Frame(type: type, flags: flags, stream: stream, payload: piece))
            type = Frame.continuation
        }
    }

    @Test(arguments: fatal)
    func aBrokenConnectionEndsAndAnotherServes(violation: Violation) async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let request = try connection.nextRequest()
            if connection.number == 1 {
                violation.act(connection, request.stream)
            } else {
                connection.respond(request.stream)
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let fault = try await harness.results(1)[0].fault
            #expect(fault == .unanswered(.connectionLost) || fault == .unanswered(.malformedAnswer))
            try await harness.wait("the end of the connection") { !$0.replacedReasons.isEmpty }
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2[1].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    /// What must end the stream alone.
    static let streamOnly = [
        Violation("no status") { connection, stream in
            connection.send(connection.headers(stream, [("apns-id", "1")], end: true))
        },
        Violation("two statuses") { connection, stream in
            connection.send(connection.headers(stream, [(":status", "200"), (":status", "200")], end: true))
        },
        Violation("a status of two digits") { connection, stream in
            connection.send(connection.headers(stream, [(":status", "20")], end: true))
        },
        Violation("a final HEADERS twice") { connection, stream in
            connection.send(
                connection.headers(stream, [(":status", "200")], end: false),
                connection.headers(stream, [(":status", "200")], end: true))
        },
        Violation("a content-length that lies") { connection, stream in
            connection.send(
                connection.headers(stream, [(":status", "200"), ("content-length", "5")], end: false),
                Frame(type: Frame.data, flags: Frame.endStream, stream: stream, payload: [1]))
        },
        Violation("an end after an interim answer") { connection, stream in
            connection.send(connection.headers(stream, [(":status", "100")], end: true))
        },
    ]

    @Test(arguments: streamOnly)
    func aBrokenAnswerEndsItsStreamAlone(violation: Violation) async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let request = try connection.nextRequest()
            violation.act(connection, request.stream)
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].fault == .unanswered(.malformedAnswer))
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2[1].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }

    @Test func unknownFramesAndSettingsAreIgnored() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 10), (0x99, 7)])
            let request = try connection.nextRequest()
            connection.send(
                Frame(type: 0xEE, flags: 0xFF, stream: request.stream, payload: [1, 2, 3]),
                Frame(type: 2, stream: request.stream, payload: [0, 0, 0, 0, 1]), Frame(type: 0xBB))
            connection.respond(request.stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }
}
