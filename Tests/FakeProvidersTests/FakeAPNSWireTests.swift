import FakeProviders
import Foundation
import Testing

@Suite struct FakeAPNSWireTests {
    private static func nghttp(_ fixture: FakeServiceFixture, _ extra: [String], tokens: [String]) throws -> String {
        var arguments = ["--verbose", "--timeout=60", "--no-dep"] + extra
        for (name, value) in try fixture.headers() { arguments += ["--header=\(name): \(value)"] }
        let body = fixture.directory + "/body.json"
        try "{\"aps\":{\"alert\":\"hello\"}}".write(toFile: body, atomically: true, encoding: .utf8)
        arguments += ["--data=" + body]
        arguments += tokens.map { "https://localhost:\(fixture.port)/3/device/\($0)" }
        return try Curl.run("nghttp", arguments).output
    }

    @Test func `one stream until a valid token, then as many as configured`() async throws {
        try await FakeServiceFixture.run(\.streams, 77) { fixture in
            let output = try Self.nghttp(fixture, [], tokens: [FakeServiceFixture.deviceToken])
            #expect(output.contains("SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1]"))
            #expect(output.contains("SETTINGS_MAX_CONCURRENT_STREAMS(0x03):77]"))
            #expect(output.contains("SETTINGS_MAX_HEADER_LIST_SIZE(0x06):8000]"))
            #expect(output.contains(":status: 200"))
        }
    }

    @Test func `a rejected push lowers the limit to one, when asked for`() async throws {
        try await FakeServiceFixture.run(\.throttlesAfterRejection, true) { fixture in
            let output = try Self.nghttp(fixture, [], tokens: ["fa400abc"])
            let settings = output.components(separatedBy: "SETTINGS_MAX_CONCURRENT_STREAMS(0x03):").dropFirst()
                .map { $0.prefix { $0.isNumber } }
            #expect(settings.filter { $0 == "1" }.count == 2)
            #expect(settings.last == "1")
        }
    }

    @Test func `sends GOAWAY with Apple's debug data`() async throws {
        try await FakeServiceFixture.run { fixture in
            let output = try Self.nghttp(fixture, [], tokens: ["fa004abc"])
            #expect(output.contains("GOAWAY"))
            #expect(output.contains("\"reason\":\"Shutdown\""))
        }
    }

    @Test func `h2load finds every request of many streams answered`() async throws {
        try await FakeServiceFixture.run(\.streamsBeforeToken, 100) { fixture in
            let body = fixture.directory + "/body.json"
            try "{\"aps\":{\"alert\":\"hello\"}}".write(toFile: body, atomically: true, encoding: .utf8)
            var arguments = ["-n", "2000", "-c", "2", "-m", "100", "-d", body]
            for (name, value) in try fixture.headers() { arguments += ["--header", "\(name): \(value)"] }
            arguments.append("https://localhost:\(fixture.port)/3/device/\(FakeServiceFixture.deviceToken)")
            let output = try Curl.run("h2load", arguments).output
            #expect(output.contains("2000 done, 2000 succeeded, 0 failed"))
            #expect(output.contains("status codes: 2000 2xx"))
            let statistics = await fixture.service.statistics
            #expect(statistics.accepted == 2000)
            #expect(statistics.connections == 2)
            #expect(statistics.protocolErrors == 0)
        }
    }

    @Test func `clients that do not trust the authority, or speak no HTTP/2, are turned away`() async throws {
        try await FakeServiceFixture.run { fixture in
            let headers = try fixture.headers()
            let stranger = fixture.directory + "/stranger.pem"
            try ServerIdentity.generated().authorityPEM.write(toFile: stranger, atomically: true, encoding: .utf8)
            let distrustful = try Curl.post(fixture, headers: headers, extra: ["--cacert", stranger])
            #expect(distrustful.exitStatus == 60)
            let old = try Curl.post(fixture, headers: headers, extra: ["--http1.1"])
            #expect(old.exitStatus == 35)
            #expect(await fixture.service.statistics.requests == 0)
        }
    }

    @Test func `an expired certificate is refused by a verifying client`() async throws {
        let expired = try ServerIdentity.generated(begin: -7200, end: -3600)
        try await FakeServiceFixture.run(\.identity, expired) { fixture in
            try expired.authorityPEM.write(
                toFile: fixture.directory + "/ca.pem", atomically: true, encoding: .utf8)
            let answer = try Curl.post(fixture, headers: try fixture.headers())
            #expect(answer.exitStatus == 60)
            #expect(answer.problem.contains("expired"))
        }
    }

    @Test func `writes a line of JSON about each request before it answers`() async throws {
        let log = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString).log")
        defer { try? FileManager.default.removeItem(at: log) }
        try await FakeServiceFixture.run(\.log, .file(log.path)) { fixture in
            var headers = try fixture.headers()
            headers["x-odd"] = "quote \" back \\ umlaut ä"
            let body = "{\"aps\":{\"alert\":\"Grüße\"},\n\"id\":7}"
            #expect(try Curl.post(fixture, headers: headers, body: body).status == 200)
            let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
            #expect(lines.count == 1)
            let line = try #require(lines.first)
            let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            #expect(object["status"] as? Int == 200)
            #expect(object["method"] as? String == "POST")
            #expect(object["path"] as? String == "/3/device/" + FakeServiceFixture.deviceToken)
            #expect((object["body"] as? [String: Any])?["id"] as? Int == 7)
            #expect((object["jwt"] as? [String: Any])?["kid"] as? String == FakeServiceFixture.keyID)
            #expect((object["headers"] as? [String: String])?["x-odd"] == headers["x-odd"])
            let time = try #require(object["time"] as? String)
            let parsed = try Date(time, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
            #expect(abs(parsed.timeIntervalSinceNow) < 60)
            let signature = try #require(headers["authorization"]?.split(separator: ".").last)
            #expect(!line.contains(signature))
            #expect(try Curl.post(fixture, headers: headers, body: "no\njson\u{1}").status == 400)
            let second = try #require(
                try String(contentsOf: log, encoding: .utf8).split(separator: "\n").dropFirst().first)
            let refused = try JSONSerialization.jsonObject(with: Data(second.utf8)) as? [String: Any]
            #expect(refused?["body"] as? String == "no\njson\u{1}")
            #expect(refused?["reason"] as? String == "BadPayload")
        }
    }

    @Test func `waiting for requests ends when they arrive or when time is up`() async throws {
        try await FakeServiceFixture.run { fixture in
            let none = await fixture.service.requests(reaching: 1, within: .milliseconds(20))
            #expect(none.isEmpty)
            let service = fixture.service
            async let waited = service.requests(reaching: 1)
            _ = try Curl.post(fixture, headers: try fixture.headers())
            #expect(await waited.count == 1)
        }
    }
}
