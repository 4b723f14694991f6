import HTTP2
import OutboxCore
import Support
import Testing

@testable import FCM

/// Every answer of the token endpoint that is known, and unknown ones by their status (reference: RFC 6749 5.2, and the
/// errors that Google's own libraries repeat).
@Suite struct TokenEndpointTests {
    struct Expected: Sendable, CustomTestStringConvertible {
        let status: Int
        let body: String
        let effect: TokenEndpointReason.Effect
        let reason: String
        var testDescription: String { "\(status) \(body.prefix(60))" }
    }

    private static func error(_ status: Int, _ word: String, _ effect: TokenEndpointReason.Effect) -> Expected {
        Expected(
            status: status, body: "{\"error\":\"\(word)\",\"error_description\":\"secret words\"}", effect: effect,
            reason: effect == .refused ? word : "the token endpoint answers \(status) \(word)")
    }

    private static func plain(_ status: Int, _ effect: TokenEndpointReason.Effect, body: String = "") -> Expected {
        Expected(
            status: status, body: body, effect: effect,
            reason: effect == .refused ? "token_refused" : "the token endpoint answers \(status)")
    }

    static let all: [Expected] = [
        error(400, "invalid_grant", .refused), error(400, "invalid_scope", .refused),
        error(400, "unauthorized_client", .refused), error(401, "unauthorized_client", .refused),
        error(400, "invalid_client", .refused), error(401, "invalid_client", .refused),
        error(400, "unsupported_grant_type", .refused), error(400, "invalid_request", .refused),
        error(500, "internal_failure", .unavailable), error(400, "internal_failure", .unavailable),
        error(503, "internal_failure", .unavailable), error(400, "server_error", .unavailable),
        error(503, "temporarily_unavailable", .unavailable), error(400, "temporarily_unavailable", .unavailable),
        plain(429, .unavailable), plain(408, .unavailable), plain(500, .unavailable), plain(502, .unavailable),
        plain(503, .unavailable, body: "<!DOCTYPE html><p>secret words"), plain(504, .unavailable),
        plain(599, .unavailable),
        plain(429, .unavailable, body: "{\"error\":\"rate_limit_exceeded\"}"),
        // What is in no table: never a token, and only the status is repeated.
        plain(400, .refused, body: "{\"error\":\"secret words\"}"), plain(400, .refused, body: "<html>"),
        plain(401, .refused), plain(403, .refused), plain(404, .refused), plain(418, .refused),
        plain(204, .unavailable), plain(301, .unavailable), plain(302, .unavailable),
    ]

    @Test(arguments: all) func eachAnswerMeansOneThing(expected: Expected) {
        let made = MadeResponse(expected.status, expected.body)
        switch TokenEndpointAnswer(made.response, text: made.bytes, now: 0) {
        case .granted:
            Issue.record("granted")
        case .refused(let refusal):
            #expect(expected.effect == .refused)
            #expect(refusal.reason == expected.reason && Int(refusal.status) == expected.status)
            #expect(!AccessFault.refused(refusal).description.contains("secret"))
        case .unavailable(let reason, let wait):
            #expect(expected.effect == .unavailable)
            #expect(reason == expected.reason && wait == .zero)
        }
    }

    @Test func everyRowIsReached() {
        var reached: [TokenEndpointReason] = []
        for expected in Self.all {
            let word = TokenEndpointReason.table.compactMap(\.error).first { expected.body.contains("\"\($0)\"") }
            for reading in [TokenEndpointReason.Reading.clock, .account] {
                reached.append(.row(status: expected.status, error: word, reading: reading))
            }
        }
        for row in TokenEndpointReason.table {
            #expect(reached.contains(row), "\(row)")
            #expect(!row.meaning.isEmpty && (row.effect == .unavailable || !row.remedy.isEmpty))
        }
    }

    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let dated: Int64 = 784_111_777

    @Test(
        arguments: [
            (0, TokenEndpointReason.Reading.account), (60, .account), (-60, .account), (61, .clock), (-61, .clock),
            (7200, .clock),
        ] as [(Int64, TokenEndpointReason.Reading)])
    func theClockIsComparedWithTheDateOfTheAnswer(ahead: Int64, reading: TokenEndpointReason.Reading) {
        let made = MadeResponse(400, "{\"error\":\"invalid_grant\"}", captured: [Self.date])
        guard
            case .refused(let refusal) = TokenEndpointAnswer(
                made.response, text: made.bytes, now: Self.dated + ahead)
        else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.row.reading == reading && refusal.clockAhead == ahead)
        let line = AccessFault.refused(refusal).description
        #expect(line.contains(reading == .clock ? "set the clock" : "make a new key"))
        #expect(line.contains(ahead < 0 ? "\(-ahead) s behind the" : "\(ahead) s ahead of the"))
    }

    @Test(arguments: [
        ("Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.", true),
        ("Invalid JWT Signature.", false),
    ])
    func withoutADateGooglesWordsTellTheReading(description: String, isClock: Bool) {
        let made = MadeResponse(400, "{\"error\":\"invalid_grant\",\"error_description\":\"\(description)\"}")
        guard case .refused(let refusal) = TokenEndpointAnswer(made.response, text: made.bytes, now: 0) else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.row.reading == (isClock ? .clock : .account))
    }

    @Test(arguments: [
        ("30", 30), ("Sun, 06 Nov 1994 08:50:07 GMT", 30), ("Sun, 06 Nov 1994 08:49:07 GMT", 0), ("soon", 0),
    ])
    func bothFormsOfRetryAfterAreHonoured(value: String, seconds: Int) {
        for status in [429, 503] {
            let made = MadeResponse(status, "", captured: [Self.date, value])
            // Our own clock is far off: the answer's date counts.
            let answer = TokenEndpointAnswer(made.response, text: made.bytes, now: 0)
            #expect(
                answer
                    == .unavailable(reason: "the token endpoint answers \(status)", wait: .seconds(seconds)))
        }
    }

    @Test(arguments: ["3599", "\"3599\""]) func theLifeIsANumberOrAString(life: String) {
        let made = MadeResponse(
            200, "{\"access_token\":\"ya29.a-b_c~d+e\\/f\\u003d\",\"expires_in\":\(life),\"token_type\":\"Bearer\"}")
        #expect(
            TokenEndpointAnswer(made.response, text: made.bytes, now: 0)
                == .granted(authorization: "Bearer ya29.a-b_c~d+e/f=", life: .seconds(3599)))
    }

    @Test(arguments: [
        "", "<html>", "{}", "{\"access_token\":\"a\",\"expires_in\":3599}",
        "{\"access_token\":\"a\",\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"a\",\"expires_in\":0,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"a\",\"expires_in\":-1,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"a\\r\\nb\",\"expires_in\":3599,\"token_type\":\"Bearer\"}",
        "{\"access_token\":\"a\",\"expires_in\":3599,\"token_type\":\"MAC\"}",
        "{\"access_token\":\"a\",\"expires_in\":3599,\"token_type\":\"Bear",
    ])
    func a200WithoutATokenThatCanBeUsedIsNoRefusal(body: String) {
        let made = MadeResponse(200, body)
        #expect(
            TokenEndpointAnswer(made.response, text: made.bytes, now: 0)
                == .unavailable(reason: "200 without a token that can be used", wait: .zero))
    }
}
