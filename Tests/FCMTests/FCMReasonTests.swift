import FCM
import OutboxCore
import Support
import Testing

/// What a row must come to, written down from Google's pages and the reliability rules, not from the code.
struct ExpectedAnswer: CustomTestStringConvertible, Sendable {
    let status: Int
    let reason: String
    let body: String
    let kind: OutcomeKind
    var scope = FaultScope.target
    var proof = TokenProof.none
    var floor = Duration.zero
    var advice = LaneAdvice.none

    var testDescription: String { "\(status) \(reason)" }

    private typealias Answer = FCMAnswer

    /// One of each row of the table.
    static let all: [ExpectedAnswer] = [
        ExpectedAnswer(
            status: 400, reason: "INVALID_ARGUMENT.payload",
            body: Answer.error("INVALID_ARGUMENT", Answer.badRequest("message.data[0].value")), kind: .rejected),
        ExpectedAnswer(
            status: 400, reason: "INVALID_ARGUMENT.token",
            body: Answer.error("INVALID_ARGUMENT", message: Answer.badToken, Answer.detail("INVALID_ARGUMENT")),
            kind: .unregistered, proof: .needsProvenLane),
        ExpectedAnswer(
            status: 400, reason: "INVALID_ARGUMENT",
            body: Answer.error(
                "INVALID_ARGUMENT", message: "Request contains an invalid argument.",
                Answer.detail("INVALID_ARGUMENT")),
            kind: .rejected),
        ExpectedAnswer(
            status: 401, reason: "THIRD_PARTY_AUTH_ERROR",
            body: Answer.error("UNAUTHENTICATED", Answer.detail("THIRD_PARTY_AUTH_ERROR")), kind: .misconfigured),
        ExpectedAnswer(
            status: 401, reason: "APNS_AUTH_ERROR",
            body: Answer.error("UNAUTHENTICATED", Answer.detail("APNS_AUTH_ERROR")), kind: .misconfigured),
        ExpectedAnswer(
            status: 401, reason: "UNAUTHENTICATED", body: Answer.error("UNAUTHENTICATED"), kind: .misconfigured,
            scope: .lane, advice: .replaceToken),
        ExpectedAnswer(
            status: 403, reason: "SENDER_ID_MISMATCH",
            body: Answer.error("PERMISSION_DENIED", Answer.detail("SENDER_ID_MISMATCH")), kind: .misconfigured),
        ExpectedAnswer(
            status: 403, reason: "PERMISSION_DENIED", body: Answer.error("PERMISSION_DENIED"), kind: .misconfigured,
            scope: .lane),
        ExpectedAnswer(
            status: 404, reason: "UNREGISTERED", body: Answer.error("NOT_FOUND", Answer.detail("UNREGISTERED")),
            kind: .unregistered, proof: .proven),
        ExpectedAnswer(
            status: 404, reason: "NOT_FOUND", body: Answer.error("NOT_FOUND"), kind: .misconfigured, scope: .lane),
        ExpectedAnswer(
            status: 429, reason: "QUOTA_EXCEEDED.device",
            body: Answer.error(
                "RESOURCE_EXHAUSTED", Answer.detail("QUOTA_EXCEEDED"),
                Answer.quota(subject: "token", "Device message rate exceeded")),
            kind: .throttled, floor: .seconds(60)),
        ExpectedAnswer(
            status: 429, reason: "QUOTA_EXCEEDED",
            body: Answer.error("RESOURCE_EXHAUSTED", Answer.detail("QUOTA_EXCEEDED")), kind: .throttled, scope: .lane,
            floor: .seconds(60)),
        ExpectedAnswer(
            status: 429, reason: "RESOURCE_EXHAUSTED.device",
            body: Answer.error("RESOURCE_EXHAUSTED", message: "Device message rate exceeded"), kind: .throttled,
            floor: .seconds(60)),
        ExpectedAnswer(
            status: 429, reason: "RESOURCE_EXHAUSTED", body: Answer.error("RESOURCE_EXHAUSTED", Answer.rateLimit),
            kind: .throttled, scope: .lane, floor: .seconds(60)),
        ExpectedAnswer(
            status: 500, reason: "INTERNAL", body: Answer.error("INTERNAL"), kind: .retry, floor: .seconds(10)),
        ExpectedAnswer(
            status: 503, reason: "UNAVAILABLE", body: Answer.error("UNAVAILABLE", Answer.detail("UNAVAILABLE")),
            kind: .retry, floor: .seconds(10)),
        ExpectedAnswer(
            status: 400, reason: "UNSPECIFIED_ERROR",
            body: Answer.error("UNKNOWN", Answer.detail("UNSPECIFIED_ERROR")), kind: .retry, floor: .seconds(10)),
    ]
}

@Suite struct FCMReasonTests {
    private typealias Answer = FCMAnswer

    @Test(arguments: ExpectedAnswer.all) func `each answer of Google's table comes to its outcome`(row: ExpectedAnswer)
    {
        let outcome = MadeResponse(row.status, row.body).decoded()
        #expect(outcome.kind == row.kind)
        #expect(outcome.scope == row.scope)
        #expect(outcome.proof == row.proof)
        #expect(outcome.retryFloor == row.floor)
        #expect(outcome.advice == row.advice)
        #expect(outcome.status == Int16(row.status))
        #expect(outcome.reason == row.reason)
        #expect(outcome.deadSince == nil && outcome.providerIdentifier == nil)
    }

    @Test func `the table has each row once and no other`() {
        let known = ExpectedAnswer.all.map { "\($0.reason == "UNSPECIFIED_ERROR" ? 0 : $0.status) \($0.reason)" }
        let listed = FCMReason.table.map { "\($0.status) \($0.reason)" }
        #expect(listed.sorted() == known.sorted())
        #expect(Set(listed).count == listed.count)
    }

    @Test(
        arguments: [
            (401, OutcomeKind.misconfigured, FaultScope.lane, 0, LaneAdvice.replaceToken),
            (403, .misconfigured, .lane, 0, .none), (404, .misconfigured, .lane, 0, .none),
            (429, .throttled, .lane, 60, .none), (500, .retry, .target, 10, .none), (502, .retry, .target, 10, .none),
            (503, .retry, .target, 10, .none), (504, .retry, .target, 10, .none), (599, .retry, .target, 10, .none),
            (100, .rejected, .target, 0, .none), (201, .rejected, .target, 0, .none),
            (204, .rejected, .target, 0, .none),
            (301, .rejected, .target, 0, .none), (307, .rejected, .target, 0, .none),
            (400, .rejected, .target, 0, .none),
            (405, .rejected, .target, 0, .none), (408, .rejected, .target, 0, .none),
            (410, .rejected, .target, 0, .none),
            (413, .rejected, .target, 0, .none), (999, .rejected, .target, 0, .none),
        ] as [(Int, OutcomeKind, FaultScope, Int, LaneAdvice)])
    func `an answer without a known code is judged by its status class, whatever the body`(
        status: Int, kind: OutcomeKind, scope: FaultScope, floor: Int, advice: LaneAdvice
    ) {
        let bodies = [
            "", "<html>PROJECT_NOT_PERMITTED</html>", "{", "[]", "{}", "{\"error\":7}", "{\"error\":{\"status\":7}}",
            Answer.error("NEW_STATUS"), "{\"error\":\"invalid_grant\"}",
        ]
        for body in bodies {
            let outcome = MadeResponse(status, body).decoded()
            #expect(outcome.kind == kind)
            #expect(outcome.scope == scope)
            #expect(outcome.proof == .none)
            #expect(outcome.retryFloor == .seconds(floor))
            #expect(outcome.advice == advice)
            #expect(outcome.reason == (body.contains("NEW_STATUS") ? "NEW_STATUS" : "no_reason"))
        }
    }

    @Test(arguments: [401, 403, 404, 429]) func `a code of FCM's own that is in no table never holds up the lane`(
        status: Int
    ) {
        let outcome = MadeResponse(status, Answer.error("PERMISSION_DENIED", Answer.detail("NEW_CODE"))).decoded()
        #expect(outcome.scope == .target && outcome.advice == .none && outcome.proof == .none)
        #expect(outcome.reason == "NEW_CODE")
    }

    @Test func `a code counts only under its own status and in its own place`() {
        let dead = Answer.error("NOT_FOUND", Answer.detail("UNREGISTERED"))
        for status in [400, 401, 403, 410, 429, 500, 503] {
            #expect(MadeResponse(status, dead).decoded().proof == .none)
        }
        #expect(MadeResponse(404, Answer.error("UNREGISTERED")).decoded().kind == .misconfigured)
        #expect(MadeResponse(404, Answer.error("NOT_FOUND", message: "UNREGISTERED")).decoded().scope == .lane)
        let foreign = "{\"@type\":\"type.googleapis.com/other.FcmError\",\"errorCode\":\"UNREGISTERED\"}"
        #expect(MadeResponse(404, Answer.error("NOT_FOUND", foreign)).decoded().reason == "NOT_FOUND")
        #expect(MadeResponse(200, dead).decoded().kind == .delivered)
    }

    @Test func `the detail may stand anywhere among the others, and the first one counts`() {
        let body = Answer.error(
            "NOT_FOUND", "7", "null", "{\"@type\":7}", Answer.rateLimit, Answer.detail("UNREGISTERED"),
            Answer.detail("INTERNAL"))
        #expect(MadeResponse(404, body).decoded().reason == "UNREGISTERED")
    }

    @Test(
        arguments: [
            // A violation of another field: a defect of the message, whatever else is said.
            (
                Answer.badToken, [Answer.detail("INVALID_ARGUMENT"), Answer.badRequest("message.android.ttl")],
                "payload"
            ),
            ("m", [Answer.badRequest("message.token", "message.data")], "payload"),
            ("m", [Answer.badRequest("message.token_extra")], "payload"),
            // The token's own field, or FCM's words about it.
            ("m", [Answer.badRequest("message.token")], "token"), ("m", [Answer.badRequest("message.fid")], "token"),
            (Answer.badToken, [Answer.detail("INVALID_ARGUMENT")], "token"),
            ("INVALID REGISTRATION TOKEN", [Answer.detail("INVALID_ARGUMENT")], "token"),
            ("The Firebase Installation ID is not valid", [Answer.detail("INVALID_ARGUMENT")], "token"),
            // Neither is proof of anything.
            (Answer.badToken, [], ""), ("m", [Answer.detail("INVALID_ARGUMENT")], ""), ("m", [], ""),
            ("registration token", [Answer.detail("INVALID_ARGUMENT")], ""),
        ] as [(String, [String], String)])
    func `both readings of INVALID_ARGUMENT are told apart by evidence`(
        message: String, details: [String], reading: String
    ) {
        let list = details.isEmpty ? "" : ",\"details\":[\(details.joined(separator: ","))]"
        let body = "{\"error\":{\"status\":\"INVALID_ARGUMENT\",\"message\":\"\(message)\"\(list)}}"
        let outcome = MadeResponse(400, body).decoded()
        #expect(outcome.reason == "INVALID_ARGUMENT" + (reading.isEmpty ? "" : ".\(reading)"))
        #expect(outcome.proof == (reading == "token" ? .needsProvenLane : .none))
        #expect(outcome.kind == (reading == "token" ? .unregistered : .rejected))
    }

    @Test func `a message is never kept`() {
        let secret = "canary-7f3a"
        for row in ExpectedAnswer.all {
            let body = row.body.replacing("\"message\":\"", with: "\"message\":\"\(secret) ")
            let outcome = MadeResponse(row.status, body).decoded()
            #expect(!"\(outcome)".contains(secret))
        }
    }

    @Test func `an unknown reason is reduced to harmless characters and cut`() {
        #expect(MadeResponse(400, Answer.error("a b<c>; drop_table-1.2 ü")).decoded().reason == "abcdrop_table-1.2")
        let long = MadeResponse(400, Answer.error(String(repeating: "x", count: 500))).decoded()
        #expect(long.reason.utf8.count == FCMResponseDecoder.reasonLimit)
        #expect(MadeResponse(400, Answer.error("<>")).decoded().reason == "no_reason")
    }

    @Test func `a 500 after a long idle time is tried elsewhere soon`() {
        let stale = MadeResponse(500, Answer.error("INTERNAL"), afterIdle: true).decoded()
        #expect(stale.kind == .retry && stale.retryFloor == .zero && stale.advice == .reconnect)
        #expect(MadeResponse(503, afterIdle: true).decoded().retryFloor == .seconds(10))
    }

    @Test(arguments: [
        ("projects/p/messages/0:1500415314455276%31bd1c9631bd1c96", "0:1500415314455276%31bd1c9631bd1c96"),
        ("projects/p/messages/6985435902064854329", "6985435902064854329"), ("projects/p/messages/", ""), ("plain", ""),
        ("projects/p/messages/two words", ""), ("projects/p/messages/a\\u0062", ""),
        ("projects/p/messages/\(String(repeating: "x", count: 100))", String(repeating: "x", count: 100)),
        ("projects/p/messages/\(String(repeating: "x", count: 101))", ""),
    ])
    func `the provider's name for a message is the last part of the name it gave`(name: String, expected: String) {
        let outcome = MadeResponse(200, "{\n  \"name\": \"\(name)\"\n}\n").decoded()
        #expect(outcome.kind == .delivered && outcome.status == 200)
        #expect(outcome.providerIdentifier == (expected.isEmpty ? nil : .text(expected)))
    }

    @Test(arguments: [
        "", "{}", "{\"name\":7}", "{\"name\":\"", "<html>", "[\"name\"]", "{\"name\":\"\"}", "{\"name\":null}",
    ])
    func `a 200 is accepted whatever its body`(body: String) {
        #expect(MadeResponse(200, body).decoded() == Outcome(.delivered, status: 200))
    }
}
