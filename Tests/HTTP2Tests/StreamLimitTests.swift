import Foundation
import HTTP2
import Testing

@Suite struct StreamLimitTests {
    @Test func nothingIsSentBeforeThePeersFirstSettings() async throws {
        let server = try ScriptedServer { connection in
            connection.answersSettings = false
            try connection.expectPreface()
            connection.drain()
            guard connection.mostOpen == 0 else { throw ServerError.unexpected("a request before SETTINGS") }
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectTimeout = .milliseconds(400)
        } _: { harness in
            await harness.submit(2)
            let results = try await harness.results(2)
            #expect(results.allSatisfy { $0.fault == .notSent(.noConnection) && !$0.wasSent })
            #expect(await harness.downCode == .connectTimeout)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func settingsWithoutALimitLiftIt() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([])
            for request in try connection.requests(200) { connection.respond(request.stream) }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(200)
            let results200 = try await harness.results(200)
            #expect(results200.allSatisfy { $0.status == 200 })
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    /// FCM ends a connection that has more than 100, whatever its SETTINGS say.
    @Test(arguments: [[], [(3, 1000)], [(3, 0x7FFF_FFFF)], [(3, 4)]] as [[(UInt16, UInt32)]])
    func neverMoreStreamsThanWeWantHoweverManyAreAllowed(settings: [(UInt16, UInt32)]) async throws {
        let server = try ScriptedServer { connection in
            try connection.begin(settings)
            for _ in 0..<30 {
                let request = try connection.nextRequest()
                try connection.synchronize()
                connection.respond(request.stream)
            }
            connection.drain()
            guard connection.mostOpen == 4 else { throw ServerError.unexpected("\(connection.mostOpen) streams") }
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 1
            $0.streamsMax = settings.first?.1 == 4 ? 100 : 4
        } _: { harness in
            await harness.submit(30)
            let results30 = try await harness.results(30)
            #expect(results30.allSatisfy { $0.status == 200 })
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func neverMoreStreamsThanAllowed() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 3)])
            for _ in 0..<30 {
                let request = try connection.nextRequest()
                try connection.synchronize()
                connection.respond(request.stream)
            }
            connection.drain()
            guard connection.mostOpen == 3 else { throw ServerError.unexpected("\(connection.mostOpen) streams") }
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 1
        } _: { harness in
            await harness.submit(30)
            let results30 = try await harness.results(30)
            #expect(results30.allSatisfy { $0.status == 200 })
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aChangedLimitIsObeyedAtOnce() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 4)])
            let first = try connection.requests(4)
            connection.sendSettings([(3, 1)])
            for request in first.dropLast() { connection.respond(request.stream) }
            try connection.synchronize()
            guard connection.open.count == 1 else { throw ServerError.unexpected("more than the last one is open") }
            connection.respond(first[3].stream)
            let single = try connection.nextRequest()
            try connection.synchronize()
            guard connection.open.count == 1 else { throw ServerError.unexpected("more than one at limit 1") }
            connection.sendSettings([(3, 0)])
            connection.respond(single.stream)
            try connection.synchronize()
            guard connection.open.isEmpty else { throw ServerError.unexpected("a stream at limit 0") }
            connection.sendSettings([(3, 0x7FFF_FFFF)])
            for request in try connection.requests(15) { connection.respond(request.stream) }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 1
        } _: { harness in
            await harness.submit(20)
            let results20 = try await harness.results(20)
            #expect(results20.allSatisfy { $0.status == 200 })
            let told = await harness.streamsTold
            #expect(told == [4, 1, 0, 1000], "limits are told as they change, and ours rules over 2^31 − 1")
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aSecondConnectionIsOpenedWhenAllStreamsStayTaken() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 2)])
            if connection.number == 1 {
                _ = try connection.requests(2)
                connection.drain()
            } else {
                for request in try connection.requests(2) { connection.respond(request.stream) }
                connection.drain()
            }
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 2
        } _: { harness in
            await harness.submit(4)
            let results = try await harness.results(2)
            #expect(Set(results.map(\.tag)) == [3, 4])
            #expect(await harness.statistics.connectionsOpened == 2)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    @Test func atALimitOfOneNoOtherConnectionIsOpened() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 1)])
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.requestTimeout = .seconds(2)
        } _: { harness in
            try await harness.warmUp()
            await harness.submit(3)
            let faults = try await harness.results(3).map(\.fault)
            #expect(faults == [.notSent(.timeout), .notSent(.timeout), .unanswered(.timeout)])
        }
        server.stop()
        #expect(server.connections == 1)
    }

    @Test func roomFollowsTheLimit() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 10)])
            for request in try connection.requests(2) { connection.respond(request.stream) }
            connection.sendSettings([(3, 1)])
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.queueLimit = 5
        } _: { harness in
            #expect(await harness.capacity == 2, "nothing is known of the peer yet: one stream and one that waits")
            await harness.submit(2)
            _ = try await harness.results(2)
            try await harness.wait("limit 1") { $0.streamsTold.last == 1 }
            #expect(await harness.capacity == 2)
            #expect(await harness.streamsTold == [10, 1])
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func afterALowerLimitTheQueueShrinks() async throws {
        let isLow = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 10)])
            let first = try connection.requests(10)
            connection.sendSettings([(3, 1)])
            try connection.synchronize()
            _ = isLow.wait(timeout: .now() + 30)
            for request in first { connection.respond(request.stream) }
            for _ in 0..<10 {
                let request = try connection.nextRequest()
                try connection.synchronize()
                guard connection.open.count == 1 else { throw ServerError.unexpected("more than one at limit 1") }
                connection.respond(request.stream)
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 1
        } _: { harness in
            await harness.submit(2)
            try await harness.wait("a limit of 10") { $0.streamsTold.last == 10 }
            #expect(await harness.capacity == 8, "ten streams less what there is: no other connection may help")
            await harness.submit(18, first: 3)
            try await harness.wait("a limit of 1") { $0.streamsTold.last == 1 }
            #expect(await harness.capacity == 0, "nothing is piled on what waits already")
            isLow.signal()
            _ = try await harness.results(18)
            #expect(await harness.capacity <= 1)
            let results = try await harness.results(20)
            #expect(results.allSatisfy { $0.status == 200 })
            #expect(await harness.capacity == 1, "one stream")
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }

    @Test func noMoreConnectionsAreMadeThanAllowed() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 2)])
            let requests = try connection.requests(2)
            // A PING shows that all streams have been taken for longer than another connection waits.
            while connection.pings < 2 { try connection.nextFrame() }
            for request in requests { connection.respond(request.stream) }
            while true { connection.respond(try connection.nextRequest().stream) }
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 2
            $0.busyBeforeAnother = .milliseconds(20)
            $0.pingAfter = .milliseconds(300)
        } _: { harness in
            await harness.submit(20)
            let results = try await harness.results(20)
            #expect(results.allSatisfy { $0.status == 200 })
            #expect(await harness.statistics.connectionsOpened == 2)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    @Test func streamIdsAreNotUsedUpToTheEnd() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            while true {
                let request = try connection.nextRequest()
                guard request.stream <= 5 else { throw ServerError.unexpected("stream \(request.stream)") }
                connection.respond(request.stream)
            }
        }
        try await ClientHarness.run(port: server.port) {
            $0.streamIDMax = 5
        } _: { harness in
            await harness.submit(8)
            let results8 = try await harness.results(8)
            #expect(results8.allSatisfy { $0.status == 200 })
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 3)
    }
}
