import Foundation
import Glibc
import HTTP2
import Testing

@Suite struct DeadlineTests {
    @Test func onlyTheStreamWithoutAnAnswerTimesOutAndItsSlotIsFreed() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            for request in try connection.requests(3) where request["apns-id"] != "id-2" {
                connection.respond(request.stream)
            }
            while connection.resets.isEmpty { try connection.nextFrame() }
            guard connection.resets[0] == (5, 8) else { throw ServerError.unexpected("\(connection.resets)") }
            connection.respond(5)
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.requestTimeout = .seconds(2)
        } _: { harness in
            try await harness.warmUp()
            await harness.submit(3)
            let results = try await harness.results(3)
            #expect(results.map(\.tag) == [1, 3, 2])
            #expect(results[2].fault == .unanswered(.timeout))
            await harness.submit(1, first: 4)
            let results4 = try await harness.results(4)
            #expect(results4[3].status == 200, "a late answer harms nobody")
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }

    @Test func whatAPausedProcessHadAcceptedBeforeItIsNotSent() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            let request = try connection.nextRequest()
            guard request["apns-id"] == "id-3" else { throw ServerError.unexpected("\(request)") }
            connection.respond(request.stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.requestTimeout = .seconds(1)
        } _: { harness in
            try await harness.warmUp()
            // As long as three quarters of the timeout: the caller's right to send ends with the whole of it.
            await harness.submit(2, then: { usleep(760_000) })
            let results2 = try await harness.results(2)
            #expect(results2.allSatisfy { $0.fault == .notSent(.timeout) })
            await harness.submit(1, first: 3)
            let results3 = try await harness.results(3)
            #expect(results3[2].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func whatWaitsForAStreamUntilItsTimeIsOverIsNotSent() async throws {
        let mayAnswer = DispatchSemaphore(value: 0)
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 2)])
            let first = try connection.requests(2)
            _ = mayAnswer.wait(timeout: .now() + 30)
            for request in first { connection.respond(request.stream) }
            for identifier in ["id-4", "id-6"] {
                let request = try connection.nextRequest()
                guard request["apns-id"] == identifier else { throw ServerError.unexpected("\(request)") }
                connection.respond(request.stream)
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.connectionsMax = 1
        } _: { harness in
            await harness.submit(2)
            try await harness.wait("both are in flight") { $0.statistics.sent == 2 }
            // In front of the others, it is found at once.
            await harness.submit(1, first: 3, sendBy: .now)
            let results1 = try await harness.results(1)
            #expect(results1[0].tag == 3 && results1[0].fault == .notSent(.overdue))
            await harness.submit(1, first: 4, sendBy: .now + .seconds(60))
            await harness.submit(1, first: 5, sendBy: .now)
            await harness.submit(1, first: 6)
            mayAnswer.signal()
            let results6 = try await harness.results(6)
            let overdue = results6.filter { $0.fault == .notSent(.overdue) }.map(\.tag)
            #expect(overdue == [3, 5])
            #expect(results6.count { $0.status == 200 } == 4)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aConnectionThatTimesOutTooOftenIsReplaced() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.requestTimeout = .seconds(2)
            $0.timeoutsMax = 3
            $0.backoffFirst = .milliseconds(1)
        } _: { harness in
            try await harness.warmUp()
            await harness.submit(3)
            let results3 = try await harness.results(3)
            #expect(results3.allSatisfy { $0.fault == .unanswered(.timeout) })
            try await harness.wait("down") { $0.downCode == .timeouts }
            try await harness.wait("up again") { $0.statistics.connectionsOpened == 2 }
            await harness.submit(1, first: 4)
            let results4 = try await harness.results(4)
            #expect(results4[3].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aConnectionThatAnswersOnly500IsReplaced() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            while true {
                let request = try connection.nextRequest()
                connection.respond(request.stream, connection.number == 1 ? 500 : 200)
            }
        }
        try await ClientHarness.run(port: server.port) {
            $0.serverErrorsMax = 3
            $0.backoffFirst = .milliseconds(1)
        } _: { harness in
            await harness.submit(3)
            let results3 = try await harness.results(3)
            #expect(results3.allSatisfy { $0.status == 500 })
            try await harness.wait("up again") { $0.statistics.connectionsOpened == 2 }
            await harness.submit(1, first: 4)
            let results4 = try await harness.results(4)
            #expect(results4[3].status == 200)
            #expect(await harness.downCode == .serverErrors)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aSilentConnectionIsPingedAndThenGivenUp() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            if connection.number == 1 {
                connection.answersPings = false
                connection.drain()
                guard connection.pings == 1 else { throw ServerError.unexpected("\(connection.pings) PINGs") }
            } else {
                connection.respond(try connection.nextRequest().stream)
                connection.drain()
            }
        }
        try await ClientHarness.run(port: server.port) {
            $0.pingAfter = .milliseconds(200)
            $0.pingTimeout = .milliseconds(200)
        } _: { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].fault == .unanswered(.connectionLost))
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2[1].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    /// What it does not allow it would not allow for ever: no request of ours would come so far as to be pinged for.
    @Test func aPeerThatAllowsNothingAndIsGoneIsLeft() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, connection.number == 1 ? 0 : 100)])
            if connection.number == 1 {
                connection.answersPings = false
                connection.drain()
            } else {
                connection.respond(try connection.nextRequest().stream)
                connection.drain()
            }
        }
        try await ClientHarness.run(port: server.port) {
            $0.pingAfter = .milliseconds(200)
            $0.pingTimeout = .milliseconds(200)
            $0.requestTimeout = .seconds(20)
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    @Test func aPeerThatAllowsNothingForAWhileIsKept() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin([(3, 0)])
            while connection.pings < 2 { try connection.nextFrame() }
            connection.sendSettings([(3, 1)])
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.pingAfter = .milliseconds(100)
            $0.pingTimeout = .seconds(10)
            $0.requestTimeout = .seconds(40)
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }

    @Test func aSlowPeerThatAnswersPingsIsKept() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let request = try connection.nextRequest()
            while connection.pings < 3 { try connection.nextFrame() }
            connection.respond(request.stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.pingAfter = .milliseconds(100)
            $0.pingTimeout = .seconds(10)
        } _: { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }

    /// Apple allows a PING after an hour of idleness.
    @Test func anIdleConnectionIsLeftAloneForAnHour() async throws {
        #expect(HTTP2ClientConfiguration(host: "a", port: 1).idlePingInterval >= .seconds(3600))
        let interval = Duration.milliseconds(500)
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            var last = ContinuousClock.now
            for _ in 0..<2 {
                let before = connection.pings
                while connection.pings == before { try connection.nextFrame() }
                let now = ContinuousClock.now
                // No more than a little earlier: the client counts from when it read what we wrote.
                guard now - last >= interval - .milliseconds(20) else {
                    throw ServerError.unexpected("a PING after \(now - last)")
                }
                last = now
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.pingAfter = .milliseconds(10)
            $0.idlePingInterval = interval
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            try await harness.wait("two PINGs") { $0.statistics.pings >= 2 }
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func anIdleConnectionIsPingedAtItsOwnInterval() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            while connection.pings < 2 { try connection.nextFrame() }
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.pingAfter = .milliseconds(10)
            $0.idlePingInterval = .milliseconds(100)
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            try await harness.wait("two PINGs") { $0.statistics.pings >= 2 }
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2[1].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 1)
    }
}
