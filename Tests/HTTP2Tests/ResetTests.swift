import HTTP2
import Testing

@Suite struct ResetTests {
    @Test func aRefusedStreamIsRepeatedAndCountedOnce() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let refused = try connection.nextRequest().stream
            connection.reset(refused, 7)
            connection.reset(refused, 5)
            let again = try connection.nextRequest()
            guard again["apns-id"] == "id-1" else { throw ServerError.unexpected("another request") }
            connection.respond(again.stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].status == 200)
            let statistics = await harness.statistics
            #expect(statistics.refused == 1 && statistics.sent == 2 && statistics.resets == 0)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func afterThreeRefusalsTheRequestComesBackUnsent() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            for _ in 0..<3 { connection.reset(try connection.nextRequest().stream, 7) }
            try connection.synchronize()
            guard connection.unread == 0 else { throw ServerError.unexpected("a fourth try") }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.fault == .notSent(.refusedStream))
            #expect(!result.wasSent)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test(arguments: [UInt32(0), 1, 2, 8, 11])
    func anyOtherResetLeavesTheRequestUnanswered(code: UInt32) async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.reset(try connection.nextRequest().stream, code)
            connection.respond(try connection.nextRequest().stream)
            try connection.synchronize()
            guard connection.unread == 0 else { throw ServerError.unexpected("a repeat") }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.fault == .unanswered(.reset))
            #expect(result.wasSent)
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2[1].status == 200, "the connection goes on")
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }

    @Test func aLostConnectionKeepsSentAndUnsentApart() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 2)])
            if connection.number == 1 {
                _ = try connection.requests(2)
                return
            }
            for _ in 0..<3 { connection.respond(try connection.nextRequest().stream) }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 1
        } _: { harness in
            await harness.submit(5)
            let results = try await harness.results(5).sorted { $0.tag < $1.tag }
            #expect(results[0].fault == .unanswered(.connectionLost))
            #expect(results[1].fault == .unanswered(.connectionLost))
            #expect(results.dropFirst(2).allSatisfy { $0.status == 200 })
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }
}
