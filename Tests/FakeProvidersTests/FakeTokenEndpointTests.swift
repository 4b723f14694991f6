import FakeProviders
import Foundation
import Testing

@Suite struct FakeTokenEndpointTests {
    @Test func `issues an access token for an assertion signed by openssl`() async throws {
        try await GoogleFixture.run { fixture in
            let answer = try fixture.ask(fixture.assertion())
            #expect(answer.status == 200, "\(answer.problem)\(answer.body)")
            #expect((answer.object["access_token"] as? String)?.hasPrefix("ya29.") == true)
            #expect(answer.object["expires_in"] as? Int == 3599)
            #expect(answer.object["token_type"] as? String == "Bearer")
            #expect(answer.headers["date"]?.hasSuffix(" GMT") == true)
            let seen = try #require(await fixture.endpoint.requests.first)
            #expect(seen.keyID == fixture.account.keyID)
            #expect(seen.issuedAt != nil)
            #expect(seen.body.isEmpty, "the assertion is on no record")
        }
    }

    @Test func `writes expires_in as a string when asked to, and with another life`() async throws {
        try await GoogleFixture.run(.init(lifetime: 120, writesExpiryAsString: true)) { fixture in
            let answer = try fixture.ask(fixture.assertion())
            #expect(answer.object["expires_in"] as? String == "120")
        }
    }

    @Test func `counts distinct assertions apart from requests`() async throws {
        try await GoogleFixture.run { fixture in
            let assertion = try fixture.assertion()
            _ = try fixture.ask(assertion)
            _ = try fixture.ask(assertion)
            let other = ["iat": Int(Date().timeIntervalSince1970) - 5]
            _ = try fixture.ask(fixture.assertion(claims: other))
            let statistics = await fixture.endpoint.statistics
            #expect(statistics.requests == 3)
            #expect(statistics.granted == 3)
            #expect(statistics.assertions == 2)
        }
    }

    struct Slip: CustomTestStringConvertible, Sendable {
        let claim: String
        let value: Value
        let error: String
        let words: String

        enum Value: Sendable {
            case text(String)
            case fromNow(Int)
        }

        var testDescription: String { "\(claim) \(value)" }
    }

    private static let slips = [
        Slip(claim: "iss", value: .text("nobody@example.com"), error: "invalid_grant", words: "account not found"),
        Slip(claim: "aud", value: .text("https://example.com/token"), error: "invalid_grant", words: "audience check"),
        Slip(claim: "scope", value: .text(""), error: "invalid_scope", words: "Empty or missing scope"),
        Slip(claim: "scope", value: .text("https://example.com/x"), error: "invalid_scope", words: "Invalid OAuth"),
        Slip(claim: "iat", value: .fromNow(600), error: "invalid_grant", words: "short-lived token"),
        Slip(claim: "iat", value: .text("soon"), error: "invalid_grant", words: "short-lived token"),
        Slip(claim: "exp", value: .fromNow(-1), error: "invalid_grant", words: "short-lived token"),
        Slip(claim: "exp", value: .fromNow(3700), error: "invalid_grant", words: "short-lived token"),
    ]

    @Test(arguments: slips) func `refuses a claim that is wrong in Google's words`(slip: Slip) async throws {
        try await GoogleFixture.run { fixture in
            let value: Any =
                switch slip.value {
                case .text(let text): text
                case .fromNow(let seconds): Int(Date().timeIntervalSince1970) + seconds
                }
            let answer = try fixture.ask(fixture.assertion(claims: [slip.claim: value]))
            #expect(answer.status == 400)
            #expect(answer.object["error"] as? String == slip.error)
            #expect((answer.object["error_description"] as? String)?.contains(slip.words) == true, "\(answer.body)")
        }
    }

    @Test func `refuses another key, a damaged signature, and what is no assertion`() async throws {
        try await GoogleFixture.run { fixture in
            func words(_ assertion: String) throws -> String? {
                try fixture.ask(assertion).object["error_description"] as? String
            }
            _ = try ServiceAccountFile.make(
                at: fixture.directory + "/stranger.json", projectID: GoogleFixture.project)
            #expect(try words(fixture.assertion(account: "stranger.json")) == "Invalid JWT Signature.")
            #expect(try words(fixture.assertion(keyID: "0000")) == "Invalid JWT Signature.")
            let good = try fixture.assertion()
            #expect(try words(String(good.dropLast(8)) + "AAAAAAAA") == "Invalid JWT Signature.")
            #expect(try words("x.y.z") == "Bad Request")
            #expect(await fixture.endpoint.statistics.granted == 0)
        }
    }

    @Test func `refuses another grant type, and knows one address only`() async throws {
        try await GoogleFixture.run { fixture in
            let assertion = try fixture.assertion()
            let other = try fixture.ask(assertion, grantType: "password")
            #expect(other.status == 400 && other.object["error"] as? String == "unsupported_grant_type")
            let none = try fixture.ask(assertion, grantType: nil)
            #expect(none.status == 400 && none.object["error"] as? String == "invalid_request")
            let elsewhere = try fixture.ask(assertion, path: "/tokens")
            #expect(elsewhere.status == 404 && elsewhere.body.contains("<!DOCTYPE html>"))
        }
    }

    @Test func `misbehaves in each of its ways as often as asked`() async throws {
        try await GoogleFixture.run { fixture in
            let assertion = try fixture.assertion()
            func answer(_ wish: TokenEndpointAnswer) async throws -> Curl.Answer {
                await fixture.endpoint.misbehave(wish, times: 1)
                return try fixture.ask(assertion, extra: ["--max-time", "5"])
            }
            #expect(try await answer(.down).status == 503)
            #expect(try await answer(.failed).object["error"] as? String == "internal_failure")
            let limited = try await answer(.tooManyRequests(.seconds(7)))
            #expect(limited.status == 429 && limited.headers["retry-after"] == "7")
            let dated = try await answer(.tooManyRequests(.date(secondsAhead: 60)))
            #expect(dated.headers["retry-after"]?.hasSuffix(" GMT") == true)
            #expect(try await answer(.clockOff).object["error"] as? String == "invalid_grant")
            #expect(try await answer(.page(status: 502)).body.contains("<!DOCTYPE html>"))
            let empty = try await answer(.empty(status: 500))
            #expect(empty.status == 500 && empty.body.isEmpty)
            #expect(try await answer(.cutOff).object.isEmpty)
            #expect(try await answer(.slow(.milliseconds(1))).status == 200)
            #expect(try await answer(.unanswered(.silence)).exitStatus == 28, "curl's timeout")
            #expect(try await answer(.unanswered(.reset)).exitStatus == 92, "curl's stream error")
            #expect(try fixture.ask(assertion).status == 200, "and then behaves")
        }
    }

    @Test func `a clock of its own makes good assertions look old`() async throws {
        try await GoogleFixture.run { fixture in
            await fixture.endpoint.setClock(ahead: 3700)
            let answer = try fixture.ask(fixture.assertion())
            #expect(answer.object["error"] as? String == "invalid_grant")
        }
    }

    @Test func `an account that was deleted is not found any more`() async throws {
        try await GoogleFixture.run { fixture in
            try await fixture.endpoint.setAccounts([])
            let answer = try fixture.ask(fixture.assertion())
            #expect(answer.object["error_description"] as? String == "Invalid grant: account not found")
        }
    }

    @Test func `a service account file reads back as the account that it was made for`() async throws {
        try await GoogleFixture.run { fixture in
            let path = fixture.directory + "/made.json"
            let account = try ServiceAccountFile.make(at: path, projectID: "p")
            #expect(try ServiceAccountFile.account(at: path) == account)
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            try "{}".write(toFile: path, atomically: true, encoding: .utf8)
            #expect(throws: FakeServerError.serviceAccount(path: path)) { try ServiceAccountFile.account(at: path) }
        }
    }
}
