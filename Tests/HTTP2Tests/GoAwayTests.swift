import Foundation
import HTTP2
import Testing

@Suite struct GoAwayTests {
    @Test func streamsAboveTheLastGoElsewhereAndLowerOnesAreAwaited() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            if connection.number == 1 {
                _ = try connection.requests(4)
                connection.goAway(last: 3, debug: #"{"reason":"Shutdown"}"#)
                connection.respond(1, 200, [("apns-id", "first")])
                connection.respond(3, 200, [("apns-id", "first")])
            } else {
                for request in try connection.requests(2) {
                    connection.respond(request.stream, 200, [("apns-id", "second")])
                }
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(4)
            let results = try await harness.results(4).sorted { $0.tag < $1.tag }
            #expect(results.map(\.status) == [200, 200, 200, 200])
            #expect(results.map { $0.captured[0] } == ["first", "first", "second", "second"])
            #expect(await harness.statistics.goAways == 1)
            #expect(await harness.replacedReasons == [#"code 0: {"reason":"Shutdown"}"#])
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    @Test func whatAPeerSaidBeforeItTookNoMoreIsStillHeard() async throws {
        let (asked, gone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let server = try ScriptedServer { connection in
            try connection.begin()
            if connection.number == 1 {
                _ = try connection.requests(4)
                asked.wait()
                connection.respond(1)
                connection.goAway(last: 5)
                connection.respond(3)
                let end = connection.abort()
                gone.signal()
                throw end
            }
            for request in try connection.requests(2) { connection.respond(request.stream) }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(4)
            try await harness.wait("four are in flight") { $0.statistics.inFlight == 4 }
            // The write of the fifth fails; answers and GOAWAY lie in the socket's buffer.
            await harness.submitUnheard(first: 5) {
                asked.signal()
                gone.wait()
            }
            let results = try await harness.results(5).sorted { $0.tag < $1.tag }
            #expect(results.map(\.status) == [200, 200, nil, 200, 200])
            #expect(results[2].fault == .unanswered(.connectionLost), "covered by the GOAWAY, and never answered")
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    @Test func lastWordsAreHeardToTheirEnd() async throws {
        let (asked, gone) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        // More than one read takes: 48 KB of headers, which no window holds back.
        let filler = [("x-filler", String(repeating: "f", count: 4000))]
        let server = try ScriptedServer { connection in
            try connection.begin()
            if connection.number == 1 {
                let requests = try connection.requests(12)
                asked.wait()
                for request in requests { connection.respond(request.stream, 200, filler) }
                connection.goAway(last: 23)
                let end = connection.abort()
                gone.signal()
                throw end
            }
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(12)
            try await harness.wait("twelve are in flight") { $0.statistics.inFlight == 12 }
            await harness.submitUnheard(first: 13) {
                asked.signal()
                gone.wait()
            }
            let results = try await harness.results(13).sorted { $0.tag < $1.tag }
            #expect(results.map(\.status) == [Int?](repeating: 200, count: 13))
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }

    @Test func whatIsSentAgainKeepsItsOrder() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let requests = try connection.requests(3)
            if connection.number == 1 {
                connection.goAway(last: 0)
            } else {
                for (place, request) in requests.enumerated() {
                    connection.respond(request.stream, 200, [("apns-id", "\(place + 1)")])
                }
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(3)
            let results = try await harness.results(3)
            #expect(results.allSatisfy { $0.captured[0] == "\($0.tag)" })
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aSecondGoAwayWithALowerLastStreamCountsNothingTwice() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            if connection.number == 1 {
                _ = try connection.requests(3)
                connection.goAway(last: 0x7FFF_FFFF)
                try connection.synchronize()
                connection.goAway(last: 1, debug: "Maximum active streams violated for this endpoint.")
                connection.respond(1)
            } else {
                for request in try connection.requests(3) { connection.respond(request.stream) }
            }
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(3)
            // While the first connection drains, a new one takes what is submitted now.
            try await harness.wait("the first GOAWAY") { !$0.replacedReasons.isEmpty }
            await harness.submit(1, first: 4)
            let results = try await harness.results(4)
            #expect(results.allSatisfy { $0.status == 200 })
            #expect(Set(results.map(\.tag)) == [1, 2, 3, 4])
            #expect(await harness.statistics.goAways == 2)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func aPeerThatAlwaysGoesAwayIsTriedThreeTimes() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            _ = try connection.nextRequest()
            connection.goAway(last: 0, code: 2)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.backoffFirst = .milliseconds(1)
            $0.backoffMax = .milliseconds(1)
        } _: { harness in
            await harness.submit()
            let fault = try await harness.results(1)[0].fault
            #expect(fault == .notSent(.goneAway) || fault == .notSent(.noConnection))
            #expect(await !harness.results[0].wasSent)
            #expect(await harness.statistics.sent <= 3)
        }
        server.stop()
    }

    @Test func aGoAwayWhileIdleIsFollowedByANewConnectionForTheNextRequest() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            connection.goAway(last: 1)
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            try await harness.wait("the GOAWAY") { $0.results.count == 1 && !$0.replacedReasons.isEmpty }
            await harness.submit(1, first: 2)
            let results2 = try await harness.results(2)
            #expect(results2.allSatisfy { $0.status == 200 })
        }
        server.stop()
        #expect(server.failures.isEmpty)
        #expect(server.connections == 2)
    }
}
