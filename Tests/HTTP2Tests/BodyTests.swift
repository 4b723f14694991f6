import HTTP2
import Testing

@Suite struct BodyTests {
    @Test func aLargeBodyIsCutAndAcknowledged() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            for request in try connection.requests(3) {
                connection.send(connection.headers(request.stream, [(":status", "503")], end: false))
                // More than both windows hold: this only ends when the client replenishes what it discards.
                try connection.sendBody(request.stream, count: 300_000)
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(3)
            for result in try await harness.results(3) {
                #expect(result.status == 503)
                #expect(result.body == [UInt8](repeating: UInt8(ascii: "b"), count: 16 * 1024))
                #expect((try? result.outcome.get())?.bodyWasCut == true)
            }
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aBodyInPiecesComesTogether() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let stream = try connection.nextRequest().stream
            connection.send(connection.headers(stream, [(":status", "400"), ("apns-id", "X")], end: false))
            for piece in ["{\"rea", "", "son\":\"B", "adTopic\"}"] {
                connection.send(Frame(type: Frame.data, stream: stream, payload: Array(piece.utf8)))
            }
            connection.send(Frame(type: Frame.data, flags: Frame.endStream, stream: stream))
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.status == 400)
            #expect(String(decoding: result.body, as: UTF8.self) == #"{"reason":"BadTopic"}"#)
            #expect(result.captured[0] == "X")
            #expect((try? result.outcome.get())?.bodyWasCut == false)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func requestBodiesWaitForTheConnectionWindow() async throws {
        let server = try ScriptedServer { connection in
            connection.replenishes = false
            try connection.begin()
            let first = try connection.requests(16)
            try connection.synchronize()
            guard connection.open.count == 16 else { throw ServerError.unexpected("\(connection.open.count) streams") }
            connection.replenishes = true
            connection.sendWindow(0, 16 * 4000)
            for request in first { connection.respond(request.stream) }
            for request in try connection.requests(24) {
                guard request.body.count == 4000 else { throw ServerError.unexpected("an incomplete body") }
                connection.respond(request.stream)
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(40, body: [UInt8](repeating: 65, count: 4000))
            let results40 = try await harness.results(40)
            #expect(results40.allSatisfy { $0.status == 200 })
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aStreamWindowOfZeroEndsAtTheDeadline() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 100), (4, 0)])
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.requestTimeout = .seconds(2)
        } _: { harness in
            try await harness.warmUp()
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.fault == .unanswered(.timeout))
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aWindowThatGrowsLetsTheBodyThrough() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 100), (4, 10)])
            while connection.open.isEmpty { try connection.nextFrame() }
            connection.sendSettings([(4, 0)])
            try connection.synchronize()
            connection.sendSettings([(4, 65_535)])
            let request = try connection.nextRequest()
            guard request.body.count == 4000 else { throw ServerError.unexpected("an incomplete body") }
            connection.respond(request.stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(1, body: [UInt8](repeating: 65, count: 4000))
            let results1 = try await harness.results(1)
            #expect(results1[0].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func anAnswerBeforeTheWholeRequestIsTaken() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 1), (4, 10)])
            while connection.open.isEmpty { try connection.nextFrame() }
            connection.respond(1, 413)
            while connection.resets.isEmpty { try connection.nextFrame() }
            connection.sendSettings([(4, 65_535)])
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(2, body: [UInt8](repeating: 65, count: 4000))
            let results = try await harness.results(2)
            #expect(results.map(\.status) == [413, 200])
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }

    @Test func interimAnswersAndTrailersAreNotTheAnswer() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let stream = try connection.nextRequest().stream
            connection.send(
                connection.headers(stream, [(":status", "100"), ("apns-id", "interim")], end: false),
                connection.headers(stream, [(":status", "103")], end: false),
                connection.headers(stream, [(":status", "200"), ("apns-unique-id", "real")], end: false),
                Frame(type: Frame.data, stream: stream, payload: [1, 2]),
                connection.headers(stream, [("apns-id", "trailer")], end: true))
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.status == 200)
            #expect(result.body == [1, 2])
            #expect(result.captured == ["", "real", "", ""])
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }
}
