import APNS
import HTTP2
import OutboxCore
import Support
import Testing

extension MadeResponse {
    init(_ status: Int, _ body: String = "", id: String, uniqueID: String = "", afterIdle: Bool = false) {
        self.init(status, body, captured: [id, uniqueID], afterIdle: afterIdle)
    }

    func decoded(serverErrorDelay: Duration = .seconds(900)) -> Outcome {
        APNSResponseDecoder(serverErrorDelay: serverErrorDelay).decode(response, text: bytes)
    }
}

/// What a row must come to, written down from Apple's page and the reliability rules, not from the code.
struct ExpectedRow: CustomTestStringConvertible, Sendable {
    let status: Int
    let reason: String
    let kind: OutcomeKind
    var scope = FaultScope.target
    var proof = TokenProof.none
    var floor = Duration.zero
    var advice = LaneAdvice.none

    var testDescription: String { "\(status) \(reason)" }

    static func defect(_ status: Int, _ reason: String) -> ExpectedRow {
        ExpectedRow(status: status, reason: reason, kind: .rejected)
    }

    static func wrong(
        _ status: Int, _ reason: String, _ scope: FaultScope, advice: LaneAdvice = .none
    ) -> ExpectedRow {
        ExpectedRow(status: status, reason: reason, kind: .misconfigured, scope: scope, advice: advice)
    }

    static let all: [ExpectedRow] = [
        .defect(400, "BadCollapseId"),
        ExpectedRow(status: 400, reason: "BadDeviceToken", kind: .unregistered, proof: .needsProvenLane),
        .defect(400, "BadExpirationDate"),
        .defect(400, "BadMessageId"),
        .defect(400, "BadPriority"),
        .wrong(400, "BadTopic", .topic),
        .wrong(400, "DeviceTokenNotForTopic", .target),
        .defect(400, "DuplicateHeaders"),
        ExpectedRow(status: 400, reason: "IdleTimeout", kind: .retry, advice: .reconnect),
        .defect(400, "InvalidPushType"),
        .defect(400, "MissingDeviceToken"),
        .wrong(400, "MissingTopic", .topic),
        .defect(400, "PayloadEmpty"),
        .wrong(400, "TopicDisallowed", .topic),
        .wrong(403, "BadCertificate", .lane),
        .wrong(403, "BadCertificateEnvironment", .lane),
        .wrong(403, "BadEnvironmentKeyIdInToken", .lane),
        .wrong(403, "BadEnvironmentKeyInToken", .lane),
        .wrong(403, "ExpiredProviderToken", .lane, advice: .replaceToken),
        .wrong(403, "Forbidden", .lane),
        .wrong(403, "InvalidProviderToken", .lane),
        .wrong(403, "MissingProviderToken", .lane),
        ExpectedRow(status: 403, reason: "UnrelatedKeyIdInToken", kind: .retry, advice: .reconnect),
        .defect(404, "BadPath"),
        .defect(405, "MethodNotAllowed"),
        ExpectedRow(status: 410, reason: "ExpiredToken", kind: .unregistered, proof: .proven),
        ExpectedRow(status: 410, reason: "Unregistered", kind: .unregistered, proof: .proven),
        .defect(413, "PayloadTooLarge"),
        ExpectedRow(
            status: 429, reason: "TooManyProviderTokenUpdates", kind: .throttled, scope: .lane, floor: .seconds(300),
            advice: .keepToken),
        ExpectedRow(status: 429, reason: "TooManyRequests", kind: .throttled, floor: .seconds(30)),
        ExpectedRow(status: 500, reason: "InternalServerError", kind: .retry, floor: .seconds(900)),
        ExpectedRow(status: 503, reason: "ServiceUnavailable", kind: .retry, floor: .seconds(900)),
        ExpectedRow(status: 503, reason: "Shutdown", kind: .retry, floor: .seconds(900), advice: .reconnect),
    ]
}

@Suite struct APNSReasonTests {
    @Test(arguments: ExpectedRow.all) func `each answer of Apple's table comes to its outcome`(row: ExpectedRow) {
        let outcome = MadeResponse(row.status, "{\"reason\":\"\(row.reason)\"}").decoded()
        #expect(outcome.kind == row.kind)
        #expect(outcome.scope == row.scope)
        #expect(outcome.proof == row.proof)
        #expect(outcome.retryFloor == row.floor)
        #expect(outcome.advice == row.advice)
        #expect(outcome.status == Int16(row.status))
        #expect(outcome.reason == row.reason)
    }

    @Test func `the table has each row once and no other`() {
        let known = ExpectedRow.all.map { "\($0.status) \($0.reason)" }
        let listed = APNSReason.table.map { "\($0.status) \($0.reason)" }
        #expect(listed.sorted() == known.sorted())
        #expect(Set(listed).count == listed.count)
    }

    @Test(
        arguments: [
            (410, OutcomeKind.unregistered, FaultScope.target, TokenProof.proven, 0),
            (403, .misconfigured, .lane, .none, 0), (429, .throttled, .target, .none, 30),
            (500, .retry, .target, .none, 900), (502, .retry, .target, .none, 900), (599, .retry, .target, .none, 900),
            (101, .rejected, .target, .none, 0), (201, .rejected, .target, .none, 0),
            (204, .rejected, .target, .none, 0),
            (301, .rejected, .target, .none, 0), (307, .rejected, .target, .none, 0),
            (400, .rejected, .target, .none, 0),
            (401, .rejected, .target, .none, 0), (418, .rejected, .target, .none, 0),
            (999, .rejected, .target, .none, 0),
        ] as [(Int, OutcomeKind, FaultScope, TokenProof, Int)])
    func `an unknown reason is judged by its status class, whatever the body`(
        status: Int, kind: OutcomeKind, scope: FaultScope, proof: TokenProof, floor: Int
    ) {
        let bodies = [
            "", "<html>", "{", "[]", "{}", "{\"reason\":7}", "{\"reason\":\"New\"}",
            "{\"reason\":\"OtherNew\",\"x\":1}",
        ]
        for body in bodies {
            let outcome = MadeResponse(status, body).decoded()
            #expect(outcome.kind == kind)
            #expect(outcome.scope == scope)
            #expect(outcome.proof == proof)
            #expect(outcome.retryFloor == .seconds(floor))
            #expect(outcome.advice == .none)
            #expect(
                outcome.reason == (body.contains("OtherNew") ? "OtherNew" : body.contains("New") ? "New" : "no_reason"))
        }
    }

    @Test func `a known reason under another status is not believed`() {
        #expect(MadeResponse(400, "{\"reason\":\"Unregistered\"}").decoded().kind == .rejected)
        #expect(MadeResponse(500, "{\"reason\":\"BadDeviceToken\"}").decoded().kind == .retry)
        #expect(MadeResponse(200, "{\"reason\":\"Unregistered\"}").decoded().kind == .delivered)
    }

    @Test func `the instant of a dead token is in milliseconds, and only a 410 has one`() {
        let body = "{\"reason\":\"Unregistered\",\"timestamp\":1437179036000}"
        #expect(MadeResponse(410, body).decoded().deadSince == Timestamp(microseconds: 1_437_179_036_000_000))
        #expect(MadeResponse(400, body).decoded().deadSince == nil)
        for stamp in ["\"1437179036000\"", "-1", "0", "1.5", "99999999999999999999", "100000000000000", "null"] {
            let odd = MadeResponse(410, "{\"reason\":\"Unregistered\",\"timestamp\":\(stamp)}").decoded()
            #expect(odd.deadSince == nil && odd.kind == .unregistered)
        }
    }

    @Test func `the provider's name for the push is the unique id, else the apns-id in either case`() {
        let echoed = "0189C4CE-7E2C-7BD5-9F8C-7F5A3A1B2C3D"
        let unique = "11111111-2222-4333-8444-555555555555"
        let plain = MadeResponse(200, id: echoed).decoded()
        #expect(plain.providerIdentifier?.description == echoed.lowercased())
        #expect(MadeResponse(200, id: echoed, uniqueID: unique).decoded().providerIdentifier?.description == unique)
        #expect(MadeResponse(200, id: echoed, uniqueID: "odd").decoded().providerIdentifier == plain.providerIdentifier)
        #expect(MadeResponse(200).decoded().providerIdentifier == nil)
        #expect(MadeResponse(200, id: "odd").decoded().providerIdentifier == nil)
    }

    @Test func `an unknown reason is reduced to harmless characters and cut`() {
        let odd = MadeResponse(400, "{\"reason\":\"a b<c>; drop_table-1.2 ü\"}").decoded()
        #expect(odd.reason == "abcdrop_table-1.2")
        let long = MadeResponse(400, "{\"reason\":\"\(String(repeating: "x", count: 500))\"}").decoded()
        #expect(long.reason.utf8.count == APNSResponseDecoder.reasonLimit)
        #expect(MadeResponse(400, "{\"reason\":\"<>\"}").decoded().reason == "no_reason")
    }

    @Test func `a 500 after a long idle time is tried elsewhere soon`() {
        let body = "{\"reason\":\"InternalServerError\"}"
        let stale = MadeResponse(500, body, afterIdle: true).decoded()
        #expect(stale.kind == .retry && stale.retryFloor == .zero && stale.advice == .reconnect)
        let unavailable = MadeResponse(503, "{\"reason\":\"ServiceUnavailable\"}", afterIdle: true).decoded()
        #expect(unavailable.retryFloor == .seconds(900))
    }

    @Test func `the floor after a 5xx is the configured one`() {
        let outcome = MadeResponse(503, "{\"reason\":\"ServiceUnavailable\"}").decoded(serverErrorDelay: .seconds(1))
        #expect(outcome.retryFloor == .seconds(1))
    }
}
