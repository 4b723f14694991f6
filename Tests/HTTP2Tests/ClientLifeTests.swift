import EventLoop
import Foundation
import HTTP2
import Testing

@Suite struct ClientLifeTests {
    @Test func whileNobodyListensTheClientIsDownAndTriesAgainByItself() async throws {
        let (descriptor, port) = try ScriptedServer.listen()
        Glibc.close(descriptor)
        try await ClientHarness.run(port: port) {
            $0.backoffFirst = .milliseconds(20)
            $0.backoffMax = .milliseconds(20)
        } _: { harness in
            await harness.submit(2)
            let results2 = try await harness.results(2)
            #expect(results2.allSatisfy { $0.fault == .notSent(.noConnection) })
            #expect(await harness.downCode == .connect)
            try await harness.wait("three tries") { $0.statistics.connectionsFailed >= 3 }
        }
    }

    @Test func theWaitBetweenTriesGrows() async throws {
        let (descriptor, port) = try ScriptedServer.listen()
        Glibc.close(descriptor)
        try await ClientHarness.run(port: port) {
            $0.backoffFirst = .milliseconds(1)
            $0.backoffMax = .milliseconds(64)
        } _: { harness in
            await harness.submit()
            try await harness.wait("ten tries") { $0.statistics.connectionsFailed >= 10 }
            let waits = await harness.downWaits
            #expect(waits[0] <= .milliseconds(1) && waits[9] > .milliseconds(32) && waits[9] <= .milliseconds(64))
        }
    }

    @Test func aHostWithoutAnAddressIsNamed() async throws {
        try await ClientHarness.run(port: 1) {
            $0.host = "no-such-host.invalid"
        } _: { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].fault == .notSent(.noConnection))
            #expect(await harness.downCode == .nameResolution)
        }
    }

    @Test func closingWaitsForWhatIsInFlight() async throws {
        let closing = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 1)])
            let request = try connection.nextRequest()
            _ = closing.wait(timeout: .now() + 30)
            connection.respond(request.stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(2)
            try await harness.wait("a request in flight") { $0.statistics.inFlight == 1 }
            async let closed: Void = harness.close(within: .seconds(10))
            _ = try await harness.results(1)  // what waited is back: closing has begun
            closing.signal()
            await closed
            let results = await harness.results
            #expect(results.map(\.fault) == [.notSent(.closed), nil])
            #expect(results.last?.status == 200)
            await harness.submit(1, first: 3)
            let results3 = try await harness.results(3)
            #expect(results3[2].fault == .notSent(.closed))
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func closingEndsAtItsLimit() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            try await harness.wait("a request in flight") { $0.statistics.inFlight == 1 }
            await harness.close(within: .milliseconds(50))
            #expect(await harness.results.map(\.fault) == [.unanswered(.connectionLost)])
        }
        server.stop()
    }

    @Test func whatWaitsCanBeTakenBack() async throws {
        let takenBack = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 1)])
            let request = try connection.nextRequest()
            _ = takenBack.wait(timeout: .now() + 30)
            connection.respond(request.stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(3)
            try await harness.wait("a request in flight") { $0.statistics.inFlight == 1 }
            await harness.cancelQueued()
            takenBack.signal()
            let results = try await harness.results(3)
            #expect(results.map(\.tag) == [2, 3, 1])
            #expect(results.map(\.fault) == [.notSent(.closed), .notSent(.closed), nil])
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func moreThanThereIsRoomForComesBackUnsent() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            while true { connection.respond(try connection.nextRequest().stream) }
        }
        try await ClientHarness.run(port: server.port) {
            $0.concurrency = 4
            $0.queueLimit = 4
        } _: { harness in
            await harness.submit(10)
            let results = try await harness.results(10).sorted { $0.tag < $1.tag }
            #expect(results.prefix(8).allSatisfy { $0.status == 200 })
            #expect(results.suffix(2).allSatisfy { $0.fault == .notSent(.noConnection) })
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    /// There is one for each access token of FCM: what stays of it adds up.
    @Test func aClosedClientIsLetGo() async throws {
        let loop = EventLoop.startThread(name: "client-life")
        defer { loop.stop() }
        let closed = await UsedClient.closed(on: loop)
        let deadline = ContinuousClock.now + .seconds(20)
        while closed.client != nil, .now < deadline { try await Task.sleep(for: .milliseconds(5)) }
        #expect(closed.client == nil)
    }
}

/// A client that had a request and was closed, as long as somebody else keeps it.
private struct UsedClient: Sendable {
    weak let client: HTTP2Client?

    static func closed(on loop: EventLoop) async -> UsedClient {
        // Nobody listens there.
        let client = HTTP2Client(HTTP2ClientConfiguration(host: "127.0.0.1", port: 1), on: loop) { _ in
        } stateChanged: { _ in
        }
        await request(of: client)
        await client.close(within: .zero)
        return UsedClient(client: client)
    }

    private static func request(of client: isolated HTTP2Client) {
        var batch = HTTPRequestBatch()
        let headers = batch.addSharedHeaders([])
        let path = batch.append { $0.append(contentsOf: "/".utf8) }
        let body = batch.append { _ in }
        batch.add(tag: 0, shared: headers, path: path, fields: [], body: body)
        client.submit(batch)
    }
}
