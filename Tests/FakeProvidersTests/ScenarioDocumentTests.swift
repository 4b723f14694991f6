import FakeProviders
import Foundation
import Testing

/// Plays every scenario of docs/fake-providers.md as it stands there, and sees what its title promises.
@Suite struct ScenarioDocumentTests {
    /// The stand-ins that a scenario is played on.
    struct Stage {
        let apns: FakeServiceFixture
        let google: GoogleFixture

        /// The answer to a push.
        func push(_ token: String = FakeServiceFixture.deviceToken, seconds: String = "20") throws -> Curl.Answer {
            try Curl.post(apns, token: token, headers: try apns.headers(), extra: ["--max-time", seconds])
        }

        /// Status and reason of so many pushes, one after the other.
        func pushes(_ count: Int, _ token: String = FakeServiceFixture.deviceToken) throws -> [String] {
            try (0..<count).map { _ in
                let answer = try push(token)
                return [String(answer.status), answer.reason].compactMap { $0 }.joined(separator: " ")
            }
        }

        /// The answer to a message.
        func message(_ token: String = GoogleFixture.token) throws -> Curl.Answer {
            try google.send(GoogleFixture.message(to: token), bearer: "x", project: GoogleFixture.project)
        }

        /// The answer to a request for an access token.
        func ask(seconds: String = "20") throws -> Curl.Answer {
            try google.ask(google.assertion(), extra: ["--max-time", seconds])
        }

        /// How many of so many pushes over one connection were answered 2xx, with up to `streams` at once.
        func load(_ count: Int, streams: Int = 1) throws -> Int {
            let body = apns.directory + "/body.json"
            try "{\"aps\":{}}".write(toFile: body, atomically: true, encoding: .utf8)
            var arguments = ["-n", String(count), "-c", "1", "-m", String(streams), "-d", body]
            for (name, value) in try apns.headers() { arguments += ["--header", "\(name): \(value)"] }
            arguments.append("https://localhost:\(apns.port)/3/device/\(FakeServiceFixture.deviceToken)")
            let output = try Curl.run("h2load", arguments).output
            let line = try #require(output.split(separator: "\n").first { $0.hasPrefix("status codes: ") })
            return try #require(Int(line.split(separator: " ")[2]))
        }
    }

    typealias Proof = @Sendable (Stage) async throws -> Void

    private static let proofs: [String: Proof] = apnsProofs.merging(googleProofs) { first, _ in first }

    private static let apnsProofs: [String: Proof] = [
        "APNs: ten minutes of 503": { try expect($0.pushes(1), ["503 ServiceUnavailable"]) },
        "APNs: ten minutes of 429": { try expect($0.pushes(1), ["429 TooManyRequests"]) },
        "APNs: the first requests after an idle time fail": {
            try expect($0.pushes(3), ["500 InternalServerError", "500 InternalServerError", "200"])
        },
        "APNs: two of a hundred tokens are bad": {
            let accepted = try $0.load(2000)
            #expect((1920..<2000).contains(accepted))
        },
        "APNs: connections that go away at random": {
            _ = try $0.load(600)
            #expect(await $0.apns.service.statistics.goAways >= 1)
        },
        "APNs: refused streams, reset twice": {
            try expect($0.load(400) < 400)
            #expect(await $0.apns.service.statistics.unanswered > 0)
        },
        "APNs: stream limits that jump": {
            try expect($0.load(400) == 400)
            #expect(await $0.apns.service.statistics.limitChanges > 3)
        },
        "APNs: a stream limit that falls for a while": {
            try expect($0.load(20) == 20)
            #expect(await $0.apns.service.statistics.limitChanges == 0, "one before the token, one after it")
        },
        "APNs: dead tokens that throttle the connection": {
            let accepted = try $0.load(100)
            #expect((50..<98).contains(accepted))
            #expect(await $0.apns.service.statistics.limitChanges > 2)
        },
        "APNs: a key of the wrong environment": { try expect($0.pushes(1), ["403 BadEnvironmentKeyInToken"]) },
        "APNs: devices of the wrong environment, but for one": {
            try expect($0.pushes(1, "00fc"), ["200"])
            try expect($0.pushes(1, "0000"), ["400 BadDeviceToken"])
        },
        "APNs: a wrong topic": { try expect($0.pushes(1), ["400 DeviceTokenNotForTopic"]) },
        "APNs: a black hole": { try expect($0.push(seconds: "0.4").exitStatus == 28, "curl's timeout") },
        "APNs: slow answers": {
            try expect($0.pushes(1), ["200"])
            #expect(await $0.apns.service.requests.map(\.reason) == ["slow"])
        },
        "APNs: some streams are never answered": {
            try expect($0.pushes(1), ["200"])
            try expect($0.push(seconds: "1").exitStatus == 28, "curl's timeout")
            try expect($0.pushes(1), ["200"])
        },
        "APNs: a proxy's pages instead of answers": {
            try expect($0.push().body.hasPrefix("<html>"))
            let empty = try $0.push()
            #expect(empty.status == 503 && empty.body.isEmpty)
            try expect($0.pushes(1), ["200"])
        },
        "APNs: a clock that is off": { try expect($0.pushes(1), ["403 ExpiredProviderToken"]) },
    ]

    private static let googleProofs: [String: Proof] = [
        "FCM: dead tokens among good ones": {
            try expect($0.message("dead1").errorCode == "UNREGISTERED")
            try expect($0.message().status == 200)
        },
        "FCM: one token of another sender": {
            try expect($0.message().errorCode == "SENDER_ID_MISMATCH")
            try expect($0.message("other").status == 200)
        },
        "FCM: the project's quota is used up": {
            let answer = try $0.message()
            #expect(answer.status == 429 && answer.headers["retry-after"] == "90")
        },
        "FCM: a device's quota is used up": {
            let answer = try $0.message()
            #expect(answer.status == 429 && answer.errorCode == "QUOTA_EXCEEDED")
            try expect($0.message("other").status == 200)
        },
        "FCM: overloaded, back at a date": {
            let answer = try $0.message()
            #expect(answer.status == 503 && answer.headers["retry-after"]?.hasSuffix(" GMT") == true)
        },
        "FCM: no right to send": {
            let answer = try $0.message()
            #expect(answer.status == 403 && answer.errorCode == nil)
        },
        "FCM: the APNs key in Firebase is bad": {
            try expect($0.message().errorCode == "THIRD_PARTY_AUTH_ERROR")
        },
        "FCM: pages and empty bodies": {
            try expect($0.message().body.hasPrefix("<!DOCTYPE html>"))
            let empty = try $0.message()
            #expect(empty.status == 500 && empty.body.isEmpty)
            try expect($0.message().status == 200)
        },
        "FCM: connections that go away, streams that are refused": { stage in
            let body = stage.google.directory + "/message.json"
            try GoogleFixture.message().write(toFile: body, atomically: true, encoding: .utf8)
            let url = "https://localhost:\(stage.google.fcmPort)/v1/projects/p/messages:send"
            let headers = ["--header", "content-type: application/json", "--header", "authorization: Bearer x"]
            _ = try Curl.run("h2load", ["-n", "200", "-c", "2", "-m", "1", "-d", body] + headers + [url])
            #expect(await stage.google.fcm.statistics.goAways > 0)
            #expect(await stage.google.fcm.statistics.unanswered > 0)
        },
        "Token endpoint: down from half a minute on": { stage in
            try expect(stage.ask().status == 200)
            var status = 200
            let deadline = ContinuousClock.now + .seconds(30)
            while status == 200, .now < deadline { status = try stage.ask().status }
            #expect(status == 503)
        },
        "Token endpoint: too many requests": {
            let answer = try $0.ask()
            #expect(answer.status == 429 && answer.headers["retry-after"] == "30")
            try expect($0.ask().status == 200)
        },
        "Token endpoint: our clock is off": { try expect($0.ask().object["error"] as? String == "invalid_grant") },
        "Token endpoint: the key was deleted": {
            try expect($0.ask().object["error_description"] as? String == "Invalid JWT Signature.")
        },
        "Token endpoint: silent, then slow": {
            try expect($0.ask(seconds: "1").exitStatus == 28, "curl's timeout")
            try expect($0.ask().status == 200)
            #expect(await $0.google.endpoint.requests.map(\.reason) == ["silence", "slow"])
        },
        "Token endpoint: HTML, nothing, half an answer": {
            try expect($0.ask().body.hasPrefix("<!DOCTYPE html>"))
            let empty = try $0.ask()
            #expect(empty.status == 500 && empty.body.isEmpty)
            let half = try $0.ask()
            #expect(half.status == 200 && half.object.isEmpty)
            try expect($0.ask().status == 200)
        },
        "Token endpoint: short-lived tokens, `expires_in` as text": {
            try expect($0.ask().object["expires_in"] as? String == "60")
        },
    ]

    private static func expect(
        _ found: [String], _ wanted: [String], sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(found == wanted, sourceLocation: sourceLocation)
    }

    /// `#expect` alone does not make a closure a throwing one.
    private static func expect(
        _ truth: Bool, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(truth, comment, sourceLocation: sourceLocation)
    }

    private static func page() throws -> String {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("docs/fake-providers.md")
        return try String(contentsOf: file, encoding: .utf8)
    }

    /// Complaints list what is allowed: that is what the page has to explain.
    @Test(arguments: [
        "apns x", "fcm x", "token x", "fcm answer x", "token answer x", "apns empty 500 x", "fcm answer ok x",
    ])
    func `explains each word that a scenario may hold`(line: String) throws {
        let error = try #require(throws: ScenarioError.self) { try Scenario(line) }
        let list = try #require(error.complaint.components(separatedBy: "allowed: ").last)
        let words = list.components(separatedBy: ", ")
        #expect(words.count > 5)
        let page = try Self.page()
        for word in words {
            #expect(page.contains("`\(word)`") || page.contains("`\(word) "), "\(word)")
        }
    }

    /// The recipes of the page: title and text.
    private static func recipes() throws -> [(title: String, text: String)] {
        let parts = try page().components(separatedBy: "\n#### ").dropFirst()
        return try parts.map { part in
            let title = try #require(part.split(separator: "\n").first)
            let block = try #require(part.components(separatedBy: "```scenario\n").dropFirst().first)
            return (String(title), try #require(block.components(separatedBy: "```").first))
        }
    }

    @Test func `every recipe has its proof, and every proof its recipe`() throws {
        let titles = try Self.recipes().map(\.title)
        #expect(Set(titles) == Set(Self.proofs.keys))
        #expect(Set(titles).count == titles.count)
    }

    @Test(arguments: proofs.keys.sorted()) func `does what its title says`(title: String) async throws {
        let recipe = try #require(try Self.recipes().first { $0.title == title })
        let proof = try #require(Self.proofs[title])
        // A minute is a second here.
        let scenario = try Scenario(recipe.text, name: title).faster(by: 60)
        try await GoogleFixture.run(.open) { google in
            try await FakeServiceFixture.run { apns in
                await apns.service.play(scenario)
                await google.fcm.play(scenario)
                await google.endpoint.play(scenario)
                try await proof(Stage(apns: apns, google: google))
            }
        }
    }
}
