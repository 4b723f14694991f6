import HTTP2
import Testing

/// The rows about misbehaviour against a server that shares no code with ours.
@Suite struct SecondServerTests {
    /// What only its stream is to suffer for: the answer does not count, and the connection goes on.
    static let malformedAnswers = [
        "headers_twice", "trailers_without_end", "trailers_with_a_status", "upper_case_header", "connection_header",
    ]

    @Test(arguments: malformedAnswers)
    func aBrokenAnswerEndsItsStreamAlone(scenario: String) async throws {
        let report = try await RawServer.run(scenario) { harness in
            await harness.submit()
            let first = try await harness.results(1)
            #expect(first[0].fault == .unanswered(.malformedAnswer))
            await harness.submit(1, first: 2)
            let results = try await harness.results(2)
            #expect(results[1].status == 200)
            #expect(await harness.replacedReasons.isEmpty)
        }
        #expect(report.connections == 1)
        #expect(report.faults.isEmpty)
    }

    /// What no connection survives.
    static let fatal = [
        "large_header_list", "hpack_bomb", "empty_continuation_flood", "continuation_flood", "wide_settings", "garbage",
        "settings_on_a_stream", "data_on_stream_zero", "data_before_headers", "ping_of_seven_bytes", "huge_frame",
        "window_of_zero",
        "frame_amid_headers", "continuation_of_nothing",
    ]

    /// More frames than anybody has to bear, each of them allowed.
    static let floods = [
        "ping_flood", "settings_flood", "empty_settings_flood", "reset_flood", "empty_data_flood", "padded_data_flood",
        "interim_flood", "window_flood", "priority_flood", "unknown_flood", "goaway_flood", "data_on_closed_flood",
    ]

    @Test(arguments: fatal + floods)
    func aBrokenConnectionEndsAndAnotherServes(scenario: String) async throws {
        let report = try await RawServer.run(scenario) { harness in
            await harness.submit()
            try await harness.wait("the end of the connection") {
                !$0.replacedReasons.isEmpty && $0.statistics.connections == 0
            }
            await harness.submit(1, first: 2)
            try await harness.wait("an answer") { $0.results.contains { $0.tag == 2 && $0.status == 200 } }
            let results = try await harness.results(2)
            #expect(results.filter { $0.tag == 1 }.count == 1, "the first has one result, whatever it is")
            #expect(await harness.statistics.sent == 2, "nothing that may have been read is sent again")
        }
        #expect(report.connections == 2)
        #expect(report.faults.isEmpty)
    }

    /// What breaks a connection before it serves: nothing was sent on it.
    @Test(arguments: ["ping_in_place_of_settings", "http_1_in_place_of_settings"])
    func aPeerThatDoesNotBeginWithSettingsHasGotNothing(scenario: String) async throws {
        let report = try await RawServer.run(scenario) {
            $0.backoffFirst = .milliseconds(20)
            $0.backoffMax = .milliseconds(20)
        } _: { harness in
            await harness.submit()
            let first = try await harness.results(1)
            #expect(first[0].fault == .notSent(.noConnection))
            #expect(await harness.downCode == .protocolViolation)
            try await harness.wait("another connection") { $0.statistics.connectionsOpened == 1 }
            await harness.submit(1, first: 2)
            let results = try await harness.results(2)
            #expect(results[1].status == 200)
        }
        #expect(report.requests == 1)
        #expect(report.faults.isEmpty)
    }

    @Test func twoGoAwaysWithJSONAndPlainWords() async throws {
        let report = try await RawServer.run("goaway_twice") { harness in
            await harness.submit(4)
            let results = try await harness.results(4)
            #expect(results.allSatisfy { $0.status == 200 })
            let statistics = await harness.statistics
            #expect(
                statistics.goAways == 2 && statistics.sent == 6 && statistics.resets == 0 && statistics.refused == 0)
            let reasons = await harness.replacedReasons
            #expect(reasons.allSatisfy { $0.hasPrefix("code 0: ") } && !reasons.isEmpty, "\(reasons)")
        }
        #expect(report.connections == 2)
        #expect(report.requests == 6)
        #expect(report.faults.isEmpty)
    }

    @Test func aRefusedStreamThatIsClosedToo() async throws {
        let report = try await RawServer.run("refused_then_closed") { harness in
            await harness.submit(3)
            let results = try await harness.results(3)
            #expect(results.allSatisfy { $0.status == 200 })
            let statistics = await harness.statistics
            #expect(statistics.refused == 1 && statistics.sent == 4 && statistics.resets == 0)
        }
        #expect(report.connections == 1)
        #expect(report.requests == 4)
        #expect(report.faults.isEmpty)
    }

    @Test func aResetWithAnotherCodeLeavesTheRequestUnanswered() async throws {
        let report = try await RawServer.run("reset_after_accept") { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].fault == .unanswered(.reset))
        }
        #expect(report.requests == 1)
        #expect(report.faults.isEmpty)
    }

    @Test func theLimitGoesFrom1To1000To1To0To1() async throws {
        let report = try await RawServer.run("limits") {
            $0.connectionsMax = 1
        } _: { harness in
            await harness.submit(20)
            try await harness.wait("1000 streams") { $0.streamsTold.contains(1000) }
            try await harness.wait("a limit of 1 again") { $0.streamsTold.last == 1 }
            await harness.submit(10, first: 21)
            let results = try await harness.results(30)
            #expect(results.allSatisfy { $0.status == 200 })
            #expect(await harness.streamsTold == [1, 1000, 1, 0, 1])
            #expect(await harness.statistics.sent == 30)
        }
        #expect(report.connections == 1)
        #expect(report.mostOpen == 17)
        #expect(report.faults.isEmpty)
    }

    @Test func silenceOnSomeStreamsDisturbsNoOther() async throws {
        let report = try await RawServer.run("silence") {
            $0.requestTimeout = .seconds(2)
        } _: { harness in
            try await harness.warmUp()
            await harness.submit(30)
            let results = try await harness.results(30)
            for result in results {
                let isSilent = result.tag % 10 == 3
                #expect(isSilent ? result.fault == .unanswered(.timeout) : result.status == 200)
            }
            await harness.submit(1, first: 31)
            let last = try await harness.results(31)
            #expect(last[30].status == 200)
        }
        #expect(report.connections == 1)
        #expect(report.resets.count == 3 && report.resets.allSatisfy { $0[1] == 8 }, "CANCEL frees their slots")
        #expect(report.faults.isEmpty)
    }

    @Test func aPeerThatAnswers500ToEverythingIsLeftWithGrowingPatience() async throws {
        let report = try await RawServer.run("always_500") {
            $0.serverErrorsMax = 2
            $0.backoffFirst = .milliseconds(40)
            $0.backoffMax = .seconds(10)
        } _: { harness in
            for number in 1...3 {
                await harness.submit(2, first: UInt64(number) * 10)
                try await harness.wait("two answers and the end of connection \(number)") {
                    $0.results.count == 2 * number && $0.downWaits.count == number
                }
                try await harness.wait("another connection") { $0.statistics.connectionsOpened == number + 1 }
            }
            await harness.submit(1, first: 40)
            let results = try await harness.results(7)
            #expect(results.dropLast().allSatisfy { $0.status == 500 })
            #expect(results[6].status == 200)
            let waits = await harness.downWaits
            #expect(waits[0] <= .milliseconds(40) && waits[2] > .milliseconds(80) && waits[2] <= .milliseconds(160))
        }
        #expect(report.connections == 4)
        #expect(report.faults.isEmpty)
    }

    @Test func howeverTheLimitChangesItIsNeverExceeded() async throws {
        let report = try await RawServer.run("random_limits") {
            $0.connectionsMax = 1
            $0.requestTimeout = .seconds(60)
        } _: { harness in
            await harness.submit(400)
            let results = try await harness.results(400)
            #expect(results.allSatisfy { $0.status == 200 || $0.fault == .unanswered(.reset) })
            #expect(await harness.statistics.sent == 400)
        }
        #expect(report.connections == 1)
        #expect(report.faults.isEmpty)
    }

    @Test func aPeerThatAnswersNothingIsLeft() async throws {
        let report = try await RawServer.run("mute") {
            $0.requestTimeout = .seconds(1)
            $0.timeoutsMax = 3
            $0.backoffFirst = .milliseconds(1)
            $0.backoffMax = .milliseconds(1)
        } _: { harness in
            for number in 1...2 {
                await harness.submit(3, first: UInt64(number) * 10)
                try await harness.wait("the end of connection \(number)") { $0.downWaits.count == number }
                #expect(await harness.downCode == .timeouts)
                try await harness.wait("another connection") { $0.statistics.connectionsOpened == number + 1 }
            }
            #expect(await harness.results.allSatisfy { $0.fault == .unanswered(.timeout) })
            await harness.submit(1, first: 30)
            let results = try await harness.results(7)
            #expect(results[6].status == 200)
        }
        #expect(report.connections == 3)
        #expect(report.faults.isEmpty)
    }

    /// Resets that cannot leave keep their streams open: the connections they are on must not stay in the way.
    @Test func aPeerThatReadsNothingIsLeftInTheEnd() async throws {
        let report = try await RawServer.run("deaf") {
            $0.connectionsMax = 1
            $0.requestTimeout = .seconds(1)
            $0.timeoutsMax = 1
            $0.backoffFirst = .milliseconds(1)
            $0.backoffMax = .milliseconds(1)
        } _: { harness in
            for number in 1...3 {
                try await harness.wait("connection \(number)") {
                    if $0.statistics.connections == 0, $0.statistics.waiting == 0 {
                        $0.submit(1, first: UInt64(number) * 1000, body: [])
                    }
                    return $0.statistics.connectionsOpened >= number
                }
                guard number < 3 else { break }
                await harness.submit(100, first: UInt64(number) * 1000 + 1, body: [UInt8](repeating: 65, count: 60_000))
                try await harness.wait("the end of connection \(number)") { $0.statistics.connections == 0 }
            }
            await harness.submit(1, first: 4000, body: [])
            try await harness.wait("an answer") { $0.results.contains { $0.tag == 4000 && $0.status == 200 } }
        }
        #expect(report.connections == 3)
        #expect(report.faults.isEmpty)
    }

    @Test func aHalfOpenPeerIsFoundOutByPING() async throws {
        let report = try await RawServer.run("half_open") {
            $0.pingAfter = .milliseconds(200)
            $0.pingTimeout = .milliseconds(200)
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].fault == .unanswered(.connectionLost))
            #expect(await harness.statistics.pings >= 1)
            await harness.submit(1, first: 2)
            let all = try await harness.results(2)
            #expect(all[1].status == 200)
        }
        #expect(report.connections == 2)
        #expect(report.faults.isEmpty)
    }

    @Test func interimAnswersPaddingAndTrailersAreNotTheAnswer() async throws {
        let report = try await RawServer.run("interim_and_trailers") { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.status == 410)
            #expect(String(decoding: result.body, as: UTF8.self) == #"{"reason":"Unregistered"}"#)
            #expect(result.captured[0] == "real")
        }
        #expect(report.faults.isEmpty)
    }

    /// What is odd and allowed: everything goes on as if it were not there.
    @Test(arguments: ["unknown_frames", "data_on_closed_streams", "window_exhaustion", "changing_settings"])
    func whatIsOddAndAllowedHarmsNobody(scenario: String) async throws {
        let report = try await RawServer.run(scenario) { harness in
            await harness.submit(3, body: [UInt8](repeating: 65, count: 100))
            let results = try await harness.results(3)
            #expect(results.allSatisfy { $0.status == 200 })
            await harness.submit(1, first: 4)
            let all = try await harness.results(4)
            #expect(all[3].status == 200)
            #expect(await harness.replacedReasons.isEmpty)
        }
        #expect(report.connections == 1)
        #expect(report.faults.isEmpty)
    }

    @Test func largeBodiesAreCutAndTheWindowsFilledUp() async throws {
        let report = try await RawServer.run("large_bodies") { harness in
            await harness.submit(3)
            for result in try await harness.results(3) {
                #expect(result.status == 503)
                #expect(result.body.count == 16 * 1024)
                #expect((try? result.outcome.get())?.bodyWasCut == true)
            }
        }
        #expect(report.connections == 1)
        #expect(report.faults.isEmpty)
    }

    @Test func aBodyWithoutEndEndsWithItsRequestAndNoOther() async throws {
        let report = try await RawServer.run("endless_body") {
            $0.requestTimeout = .seconds(2)
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].fault == .unanswered(.timeout))
            await harness.submit(1, first: 2)
            let all = try await harness.results(2)
            #expect(all[1].status == 200)
            #expect(await harness.replacedReasons.isEmpty)
        }
        #expect(report.connections == 1)
        #expect(report.resets.map { $0[1] } == [8])
        #expect(report.faults.isEmpty)
    }

    @Test func anEmptyBodyLeavesTheStatus() async throws {
        let report = try await RawServer.run("empty_error_bodies") { harness in
            await harness.submit(3)
            for result in try await harness.results(3) {
                #expect(result.status == 503)
                #expect(result.body.isEmpty)
                #expect((try? result.outcome.get())?.bodyWasCut == false)
            }
        }
        #expect(report.faults.isEmpty)
    }
}
