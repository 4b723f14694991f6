import Foundation
import HTTP2
import Testing

@Suite struct ConnectionLifeTests {
    @Test func aPeerThatStallsInTheHandshakeIsGivenUpInTime() async throws {
        // The kernel completes TCP for a listener that nobody accepts from.
        let (descriptor, port) = try ScriptedServer.listen()
        defer { Glibc.close(descriptor) }
        try await ClientHarness.run(port: port) {
            $0.connectTimeout = .milliseconds(300)
        } _: { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].fault == .notSent(.noConnection))
            #expect(await harness.downCode == .connectTimeout)
        }
    }

    @Test func aGoAwayInPlaceOfSettingsIsAFailedConnection() async throws {
        let server = try ScriptedServer { connection in
            try connection.expectPreface()
            connection.goAway(last: 0, code: 11, debug: "enough")
            connection.answersSettings = false
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].fault == .notSent(.noConnection))
            #expect(await harness.statistics.connectionsFailed == 1)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func anIdleSecondConnectionIsClosedAndTheFirstIsKept() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 2)])
            let requests = try connection.requests(2)
            if connection.number == 1 {
                while connection.pings == 0 { try connection.nextFrame() }
                for request in requests { connection.respond(request.stream) }
                connection.respond(try connection.nextRequest().stream)
            } else {
                for request in requests { connection.respond(request.stream) }
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 2
            $0.idleTimeout = .milliseconds(300)
            $0.pingAfter = .seconds(1)
        } _: { harness in
            await harness.submit(4)
            try await harness.wait("two connections") { $0.statistics.connections == 2 }
            try await harness.wait("one connection") { $0.statistics.connections == 1 }
            _ = try await harness.results(4)
            await harness.submit(1, first: 5)
            let results5 = try await harness.results(5)
            #expect(results5.allSatisfy { $0.status == 200 })
            #expect(await harness.replacedReasons.isEmpty, "nothing to worry about")
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    @Test func anOldConnectionIsReplaced() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionLifetime = .milliseconds(500)
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            try await harness.wait("the end of the connection") { $0.statistics.connections == 0 }
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2[1].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections >= 2)
    }

    @Test func replacedConnectionsAnswerWhatTheyHave() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let request = try connection.nextRequest()
            if connection.number == 1 {
                // Until the client's PINGs show that it has gone on without us.
                while connection.pings == 0 { try connection.nextFrame() }
            }
            connection.respond(request.stream, 200, [("apns-id", "\(connection.number)")])
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.pingAfter = .seconds(1)
        } _: { harness in
            await harness.submit()
            try await harness.wait("a request in flight") { $0.statistics.inFlight == 1 }
            await harness.replaceConnections()
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2.map(\.tag) == [2, 1])
            #expect(results2.map { $0.captured.first } == ["2", "1"])
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }
}
