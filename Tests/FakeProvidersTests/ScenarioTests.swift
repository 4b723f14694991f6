import FakeProviders
import Foundation
import Testing

@Suite struct ScenarioTests {
    struct Slip: CustomTestStringConvertible, Sendable {
        let line: String
        let words: String

        init(_ line: String, _ words: String) {
            self.line = line
            self.words = words
        }

        var testDescription: String { line }
    }

    private static let slips = [
        Slip("apple answer 503", "`apple` is no service; allowed: apns, fcm, token, seed"),
        Slip("apns", "apns does what? allowed: answer, accept"),
        Slip("apns explode", "apns cannot `explode`; allowed: answer, accept"),
        Slip("token goaway-after", "token cannot `goaway-after`"),
        Slip("apns answer", "answer needs a value"),
        Slip("apns answer five", "answer: `five` is no number from 300 to 599"),
        Slip("apns answer 200", "answer: `200` is no number from 300 to 599"),
        Slip("apns answer 451", "status 451 needs a reason behind it"),
        Slip("fcm answer Unregistered", "answer: `Unregistered` is unknown; allowed: ok, slow, unregistered"),
        Slip("token answer off", "answer: `off` is unknown; allowed: down, failed"),
        Slip("apns answer 503 from", "from needs a value: 500ms, 30s, 5m, 1h"),
        Slip("apns answer 503 from 10", "from: `10` is no duration; allowed: 500ms, 30s, 5m, 1h"),
        Slip("apns answer 503 from 5m to 30s", "`to` is not after `from`"),
        Slip("apns answer 503 rate 2", "rate: `2` is no percentage"),
        Slip("apns answer 503 rate 0%", "rate: `0%` is no percentage above 0%"),
        Slip("apns answer 503 rate 101%", "rate: `101%` is no percentage"),
        Slip("apns answer 503 times 0", "times: `0` is no number of at least 1"),
        Slip("apns answer 503 requests 9-3", "requests: `9-3` is not N or N-M"),
        Slip("apns answer 503 until 5m", "`until` cannot stand here; allowed: from, to, requests"),
        Slip("apns answer 503 retry-after 5s", "`retry-after` cannot stand here"),
        Slip("fcm answer ok topic x", "`topic` cannot stand here"),
        Slip("token answer down prefix x", "`prefix` cannot stand here"),
        Slip("apns goaway every x", "every: `x` is not N or N-M from 1 to 1000000"),
        Slip("apns goaway every 5 to 10s", "`to` is too much here"),
        Slip("apns streams 1-1000", "streams 1-1000 needs `every N-M`"),
        Slip("apns black-hole rate 5%", "`rate` cannot stand here; allowed: from, to"),
        Slip("apns clock 5m", "clock: `5m` is no shift; allowed: + or - and a duration"),
        Slip("seed x", "seed: `x` is no number of at least 0"),
    ]

    @Test(arguments: slips) func `names the line, what is wrong and what is allowed`(slip: Slip) throws {
        let error = try #require(throws: ScenarioError.self) {
            try Scenario("# first\n\napns answer 503 to 10m\n\(slip.line)  # last\n", name: "storm.txt")
        }
        #expect(error.line == 4)
        #expect(error.description.hasPrefix("storm.txt:4: " + slip.words), "\(error)")
    }

    @Test func `the first line that fits decides, and its limits count for it alone`() async throws {
        let scenario = try Scenario(
            """
            apns answer 429 TooManyRequests prefix 00fc times 1
            apns accept prefix 00fc requests 2
            apns answer 503
            """)
        try await FakeServiceFixture.run { fixture in
            await fixture.service.play(scenario)
            let headers = try fixture.headers()
            let answers = try ["00fc", "00fc", "00fc", "0000"].map {
                try Curl.post(fixture, token: $0, headers: headers).status
            }
            #expect(answers == [429, 200, 503, 503])
            await fixture.service.play(Scenario())
            let after = try Curl.post(fixture, headers: headers)
            #expect(after.status == 200, "a new scenario replaces the old one")
        }
    }

    @Test func `lines begin and end when they say`() async throws {
        let scenario = try Scenario("apns answer 503 to 1h\napns answer 500 from 1h\n").faster(by: 3600)
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            await fixture.service.play(scenario)
            let first = try Curl.post(fixture, headers: headers)
            #expect(first.status == 503)
            var status = first.status
            let deadline = ContinuousClock.now + .seconds(30)
            while status == 503, .now < deadline { status = try Curl.post(fixture, headers: headers).status }
            #expect(status == 500)
        }
    }

    @Test func `a black hole swallows what was answered on connections that are open`() async throws {
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            await fixture.service.holdAnswers()
            async let lost = Curl.post(fixture, headers: headers, extra: ["--max-time", "3"])
            _ = await fixture.service.requests(reaching: 1)
            await fixture.service.play(try Scenario("apns black-hole"))
            await fixture.service.resumeAnswering()
            #expect(await fixture.service.statistics.accepted == 1)
            #expect(try await lost.exitStatus == 28, "curl's timeout")
            await fixture.service.play(Scenario())
            await fixture.service.holdAnswers()
            async let late = Curl.post(fixture, headers: headers)
            _ = await fixture.service.requests(reaching: 2)
            await fixture.service.play(try Scenario("apns black-hole"))
            await fixture.service.resumeAnswering()
            #expect(await fixture.service.statistics.accepted == 2)
            await fixture.service.play(Scenario())
            #expect(try await late.status == 200)
        }
    }

    @Test func `a black hole answers nobody, and gives back what it took`() async throws {
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            await fixture.service.play(try Scenario("apns black-hole"))
            let lost = try Curl.post(fixture, headers: headers, extra: ["--max-time", "2"])
            #expect(lost.exitStatus == 28, "curl's timeout")
            #expect(await fixture.service.statistics.requests == 0)
            await fixture.service.play(try Scenario("apns black-hole to 1s"))
            let late = try Curl.post(fixture, headers: headers)
            #expect(late.status == 200, "\(late.problem)")
        }
    }
}
