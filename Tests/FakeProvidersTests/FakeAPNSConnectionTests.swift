import FakeProviders
import Foundation
import Testing

/// What APNs remembers about a connection, and what the strict mode refuses on top.
@Suite struct FakeAPNSConnectionTests {
    /// Pushes once for each of `authorizations` over one connection, and answers status and reason of each.
    private static func push(_ fixture: FakeServiceFixture, _ authorizations: [String]) throws -> [String] {
        var arguments: [String] = []
        for authorization in authorizations {
            if !arguments.isEmpty { arguments.append("--next") }
            var headers = try fixture.headers()
            headers["authorization"] = authorization
            arguments += [
                "--silent", "--http2", "--max-time", "60", "--cacert", fixture.directory + "/ca.pem", "--data-binary",
                "{\"aps\":{}}", "--write-out", " %{http_code}\n",
            ]
            for (name, value) in headers { arguments += ["--header", "\(name): \(value)"] }
            arguments.append("https://localhost:\(fixture.port)/3/device/00fc13ad")
        }
        return try Curl.run("curl", arguments).output.split(separator: "\n").map(String.init)
    }

    @Test func `a provider token that changes too soon on a connection is refused, the older one is not`() async throws
    {
        try await FakeServiceFixture.run { fixture in
            let first = try fixture.authorization(age: 600)
            let second = try fixture.authorization(age: 60)
            let answers = try Self.push(fixture, [first, second, first])
            #expect(answers == [" 200", "{\"reason\":\"TooManyProviderTokenUpdates\"} 429", " 200"])
            let other = try Self.push(fixture, [second])
            #expect(other == [" 200"], "another connection begins with any")
            #expect(await fixture.service.statistics.connections == 2)
        }
    }

    @Test func `a shorter interval speeds time up`() async throws {
        try await FakeServiceFixture.run(\.tokenUpdateInterval, .zero) { fixture in
            let tokens = try [600, 60].map { try fixture.authorization(age: $0) }
            #expect(try Self.push(fixture, tokens) == [" 200", " 200"])
        }
    }

    @Test func `a connection serves one team, and one key`() async throws {
        try await FakeServiceFixture.run(\.keys, []) { fixture in
            let first = try fixture.authorization()
            let answers = try Self.push(
                fixture,
                [first, fixture.authorization(teamID: "ZZZZZZZZZZ"), fixture.authorization(keyID: "ZZZZZZZZZZ")])
            #expect(answers.first == " 200")
            #expect(answers.dropFirst().first == "{\"reason\":\"Forbidden\"} 403")
            #expect(answers.last == "{\"reason\":\"UnrelatedKeyIdInToken\"} 403")
        }
    }

    @Test func `an expired token wedges the connection for newer ones too`() async throws {
        try await FakeServiceFixture.run { fixture in
            let answers = try Self.push(fixture, [fixture.authorization(age: 3700), fixture.authorization()])
            #expect(answers == Array(repeating: "{\"reason\":\"ExpiredProviderToken\"} 403", count: 2))
        }
    }

    @Test func `counts the distinct tokens of a key within an hour`() async throws {
        try await FakeServiceFixture.run { fixture in
            for age: Int64 in [10, 20, 20, 30] {
                let answers = try Self.push(fixture, [fixture.authorization(age: age)])
                #expect(answers == [" 200"])
            }
            await fixture.service.setClock(ahead: 3590)
            let later = try Self.push(fixture, [fixture.authorization(age: -3590)])
            #expect(later == [" 200"])
            #expect(await fixture.service.statistics.providerTokens == 4)
            #expect(await fixture.service.statistics.providerTokensInAnHour == 4)
            await fixture.service.setClock(ahead: 7300)
            _ = try Self.push(fixture, [fixture.authorization(age: -7300)])
            #expect(await fixture.service.statistics.providerTokens == 5)
            #expect(await fixture.service.statistics.providerTokensInAnHour == 4)
        }
    }

    @Test func `a key may be for some topics, or for the other environment`() async throws {
        try await FakeServiceFixture.run { fixture in
            let file = fixture.directory + "/apns.p8"
            let keyID = FakeServiceFixture.keyID
            var key = try IdentityFiles.providerKey(at: file, keyID: keyID, teamID: FakeServiceFixture.teamID)
            key.topics = ["com.example.tv"]
            try await FakeServiceFixture.run(\.keys, [key]) { narrow in
                let answers = try Self.push(narrow, [fixture.authorization()])
                #expect(answers == ["{\"reason\":\"TopicDisallowed\"} 400"])
            }
            key.topics = []
            key.isOfOtherEnvironment = true
            try await FakeServiceFixture.run(\.keys, [key]) { foreign in
                let answers = try Self.push(foreign, [fixture.authorization()])
                #expect(answers == ["{\"reason\":\"BadEnvironmentKeyInToken\"} 403"])
            }
        }
    }

    @Test func `tells the time in every answer`() async throws {
        try await FakeServiceFixture.run { fixture in
            await fixture.service.setClock(ahead: -86_400 * 365)
            for token in [FakeServiceFixture.deviceToken, "fa410abc", "fa009abc"] {
                let answer = try Curl.post(fixture, token: token, headers: try fixture.headers())
                let date = try #require(answer.headers["date"])
                let format = DateFormatter()
                format.locale = Locale(identifier: "en_US_POSIX")
                format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
                let parsed = try #require(format.date(from: date), "\(date)")
                #expect(abs(parsed.timeIntervalSinceNow + 86_400 * 365) < 60)
            }
        }
    }

    private static let slips =
        [
            ("x-odd", "1", "x-odd", "2", "DuplicateHeaders"),
            ("apns-topics", "com.example.app", nil, nil, "UnknownHeader"),
            ("apns-expiration", "300", nil, nil, "BadExpirationDate"),
            ("apns-expiration", "1890000000000", nil, nil, "BadExpirationDate"),
        ] as [(String, String, String?, String?, String)]

    @Test(arguments: slips) func `strict mode refuses what the ordinary mode lets pass`(
        name: String, value: String, second: String?, secondValue: String?, reason: String
    ) async throws {
        for isStrict in [true, false] {
            try await FakeServiceFixture.run(\.isStrict, isStrict) { fixture in
                var headers = try fixture.headers()
                headers[name] = value
                let extra = second.map { ["--header", "\($0): \(secondValue ?? "")"] } ?? []
                let answer = try Curl.post(fixture, headers: headers, extra: extra)
                #expect(answer.reason == (isStrict ? reason : nil))
            }
        }
    }

    @Test func `strict mode wants the topic's suffix also where every topic is allowed`() async throws {
        try await FakeServiceFixture.run(\.isStrictAboutAnyTopic, true) { fixture in
            for (type, topic, reason) in [
                ("alert", "com.example.app.voip", "TopicDisallowed"), ("voip", "com.example.app", "TopicDisallowed"),
                ("voip", "com.example.app.voip", nil), ("background", "com.example.app", "BadPriority"),
            ] {
                var headers = try fixture.headers()
                headers["apns-push-type"] = type
                headers["apns-topic"] = topic
                headers["apns-priority"] = type == "background" ? "1" : "10"
                #expect(try Curl.post(fixture, headers: headers).reason == reason, "\(type) \(topic)")
            }
        }
    }
}

extension FakeAPNSConfiguration {
    /// Strict, and with no list of topics.
    fileprivate var isStrictAboutAnyTopic: Bool {
        get { isStrict && topics.isEmpty }
        set {
            isStrict = newValue
            topics = []
        }
    }
}
