import FakeProviders
import Foundation
import Testing

@Suite struct FakeAPNSTests {
    @Test func `accepts a proper push from curl, echoes its id and keeps it on record`() async throws {
        try await FakeServiceFixture.run { fixture in
            var headers = try fixture.headers()
            headers["apns-collapse-id"] = String(repeating: "x", count: 64)
            let answer = try Curl.post(fixture, headers: headers)
            #expect(answer.status == 200, "\(answer.problem)")
            #expect(answer.headers["apns-id"] == headers["apns-id"])
            #expect(answer.headers["apns-unique-id"] == nil)
            #expect(answer.body.isEmpty)
            let seen = try #require(await fixture.service.requests.first)
            #expect(seen.method == "POST")
            #expect(seen.token == FakeServiceFixture.deviceToken)
            #expect(seen.headers["apns-topic"] == "com.example.app")
            #expect(seen.body == "{\"aps\":{\"alert\":\"hello\"}}")
            #expect(seen.keyID == FakeServiceFixture.keyID)
            #expect(seen.status == 200)
            let signature = try #require(headers["authorization"]?.split(separator: ".").last)
            #expect(seen.headers["authorization"]?.contains(signature) == false)
        }
    }

    @Test func `makes an id in upper case when none was sent, and a unique id in the sandbox`() async throws {
        try await FakeServiceFixture.run(\.isSandbox, true) { fixture in
            var headers = try fixture.headers()
            headers["apns-id"] = nil
            let answer = try Curl.post(fixture, headers: headers)
            let made = try #require(answer.headers["apns-id"])
            #expect(UUID(uuidString: made)?.uuidString == made)
            let unique = try #require(answer.headers["apns-unique-id"])
            #expect(UUID(uuidString: unique)?.uuidString.lowercased() == unique)
        }
    }

    struct Slip: CustomTestStringConvertible, Sendable {
        let header: String
        let value: String?
        let status: Int
        let reason: String

        init(_ header: String, _ value: String?, _ status: Int, _ reason: String) {
            self.header = header
            self.value = value
            self.status = status
            self.reason = reason
        }

        var testDescription: String { "\(header): \(value?.prefix(20) ?? "absent")" }
    }

    private static let slips = [
        Slip("authorization", nil, 403, "MissingProviderToken"),
        Slip("authorization", "bearer x.y.z", 403, "InvalidProviderToken"),
        Slip("apns-topic", nil, 400, "MissingTopic"),
        Slip("apns-topic", "com.example.other", 400, "TopicDisallowed"),
        Slip("apns-topic", "com.example.app.voip", 400, "TopicDisallowed"),
        Slip("apns-push-type", nil, 400, "InvalidPushType"),
        Slip("apns-push-type", "shout", 400, "InvalidPushType"),
        Slip("apns-push-type", "voip", 400, "TopicDisallowed"),
        Slip("apns-push-type", "background", 400, "BadPriority"),
        Slip("apns-priority", "7", 400, "BadPriority"),
        Slip("apns-expiration", "soon", 400, "BadExpirationDate"),
        Slip("apns-expiration", "-1", 400, "BadExpirationDate"),
        Slip("apns-id", "0189C4CE-7E2C-7BD5-9F8C-7F5A3A1B2C3D", 400, "BadMessageId"),
        Slip("apns-id", "1", 400, "BadMessageId"),
        Slip("apns-collapse-id", String(repeating: "x", count: 65), 400, "BadCollapseId"),
    ]

    @Test(arguments: slips) func `refuses a header that is wrong with Apple's reason`(slip: Slip) async throws {
        try await FakeServiceFixture.run { fixture in
            var headers = try fixture.headers()
            headers[slip.header] = slip.value
            let answer = try Curl.post(fixture, headers: headers)
            #expect(answer.status == slip.status)
            #expect(answer.reason == slip.reason)
            #expect(answer.headers["content-type"] == "application/json")
        }
    }

    @Test func `refuses paths, methods, bodies and tokens that are wrong`() async throws {
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            let path = try Curl.post(fixture, path: "/2/device/00", headers: headers)
            #expect(path.status == 404 && path.reason == "BadPath")
            let method = try Curl.post(fixture, method: "GET", headers: headers)
            #expect(method.status == 405 && method.reason == "MethodNotAllowed")
            let none = try Curl.post(fixture, token: "", headers: headers)
            #expect(none.status == 400 && none.reason == "MissingDeviceToken")
            for token in ["00fc1", "<00fc13ad>", "00fc13ag", String(repeating: "a", count: 402)] {
                let answer = try Curl.post(fixture, token: token, headers: headers)
                #expect(answer.status == 400 && answer.reason == "BadDeviceToken")
            }
            let empty = try Curl.post(fixture, headers: headers, body: "")
            #expect(empty.status == 400 && empty.reason == "PayloadEmpty")
            for body in ["[]", "\"{}\"", "{\"a\":1", "{\"aps\":{}} x"] {
                #expect(try Curl.post(fixture, headers: headers, body: body).reason == "BadPayload")
            }
            let frame = "{\"x\":\"\"}".utf8.count
            let fits = "{\"x\":\"\(String(repeating: "y", count: 4096 - frame))\"}"
            #expect(try Curl.post(fixture, headers: headers, body: fits).status == 200)
            let large = try Curl.post(fixture, headers: headers, body: fits + " ")
            #expect(large.status == 413 && large.reason == "PayloadTooLarge")
        }
    }

    @Test func `a voip push has its own topic and may be larger`() async throws {
        try await FakeServiceFixture.run { fixture in
            var headers = try fixture.headers()
            headers["apns-push-type"] = "voip"
            headers["apns-topic"] = "com.example.app.voip"
            let body = "{\"x\":\"\(String(repeating: "y", count: 5112))\"}"
            #expect(try Curl.post(fixture, headers: headers, body: body).status == 200)
            #expect(try Curl.post(fixture, headers: headers, body: body + " ").status == 413)
        }
    }

    @Test func `holds provider tokens to key, team, signature and age`() async throws {
        try await FakeServiceFixture.run { fixture in
            func reason(_ authorization: String) throws -> String? {
                var headers = try fixture.headers()
                headers["authorization"] = authorization
                return try Curl.post(fixture, headers: headers).reason
            }
            let stranger = fixture.directory + "/stranger.p8"
            try IdentityFiles.makeProviderKey(at: stranger)
            let other = try String(contentsOfFile: stranger, encoding: .utf8)
            #expect(try reason(fixture.authorization()) == nil)
            #expect(try reason(fixture.authorization(key: other)) == "InvalidProviderToken")
            #expect(try reason(fixture.authorization(keyID: "ZZZZZZZZZZ")) == "InvalidProviderToken")
            #expect(try reason(fixture.authorization(teamID: "ZZZZZZZZZZ")) == "InvalidProviderToken")
            #expect(try reason(fixture.authorization(age: 3590)) == nil)
            #expect(try reason(fixture.authorization(age: 3610)) == "ExpiredProviderToken")
            #expect(try reason(fixture.authorization(age: -3610)) == "ExpiredProviderToken")
            // Genuine ones: age 60, 3590, 3610 and -3610.
            #expect(await fixture.service.statistics.providerTokens == 4)
        }
    }

    @Test func `a clock of its own makes good tokens look old`() async throws {
        try await FakeServiceFixture.run { fixture in
            await fixture.service.setClock(ahead: 3700)
            let answer = try Curl.post(fixture, headers: try fixture.headers())
            #expect(answer.status == 403 && answer.reason == "ExpiredProviderToken")
        }
    }

    @Test func `a 410 tells when, in milliseconds`() async throws {
        try await FakeServiceFixture.run { fixture in
            let before = Int64(Date().timeIntervalSince1970 * 1000)
            let answer = try Curl.post(fixture, token: "fa410abc", headers: try fixture.headers())
            #expect(answer.status == 410 && answer.reason == "Unregistered")
            let object = try JSONSerialization.jsonObject(with: Data(answer.body.utf8)) as? [String: Any]
            let stamp = try #require((object?["timestamp"] as? NSNumber)?.int64Value)
            #expect(stamp >= before - 1000 && stamp <= before + 60_000)
        }
    }

    @Test(arguments: [
        ("fa400abc", 400, "BadDeviceToken"), ("fa403abc", 403, "InvalidProviderToken"),
        ("FA413abc", 413, "PayloadTooLarge"), ("fa429abc", 429, "TooManyRequests"),
        ("fa500abc", 500, "InternalServerError"), ("fa503abc", 503, "ServiceUnavailable"),
        ("fa418abc", 418, "Imagined"), ("fa4000ab", 400, "BadDeviceToken"),
    ])
    func `misbehaves for ever when the prefix names no number of tries`(
        token: String, status: Int, reason: String
    ) async throws {
        try await FakeServiceFixture.run { fixture in
            for _ in 0..<3 {
                let answer = try Curl.post(fixture, token: token, headers: try fixture.headers())
                #expect(answer.status == status && answer.reason == reason)
            }
        }
    }

    @Test func `misbehaves as often as the prefix says, for each token`() async throws {
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            func status(_ token: String) throws -> Int {
                try Curl.post(fixture, token: token, headers: headers).status
            }
            #expect(try [status("fa5031aa"), status("fa5031aa"), status("fa5031aa")] == [503, 200, 200])
            #expect(try [status("fa5002bb"), status("fa5031bb"), status("fa5002bb")] == [500, 503, 500])
            #expect(try status("fa5002bb") == 200)
        }
    }

    @Test func `leaves requests unanswered in each of its ways`() async throws {
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            func exit(_ token: String, seconds: String = "60") throws -> Int32 {
                try Curl.post(fixture, token: token, headers: headers, extra: ["--max-time", seconds]).exitStatus
            }
            #expect(try exit("fa000abc", seconds: "5") == 28, "curl's timeout")
            #expect(try exit("fa001abc") == 92, "curl's stream error")
            #expect(try exit("fa002abc") != 0)
            #expect(try exit("fa003abc") == 0)
            let notes = await fixture.service.requests.map(\.reason)
            #expect(notes == ["silence", "reset", "closed", "slow"])
            #expect(await fixture.service.statistics.unanswered == 3)
        }
    }

    @Test func `refused and gone-away streams are repeated by curl on their own`() async throws {
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            #expect(try Curl.post(fixture, token: "fa0071ab", headers: headers).status == 200)
            #expect(try Curl.post(fixture, token: "fa005abc", headers: headers).status == 200)
            let unreadable = try Curl.post(fixture, token: "fa009abc", headers: headers)
            #expect(unreadable.status == 500 && unreadable.body.hasPrefix("<html>"))
        }
    }
}
