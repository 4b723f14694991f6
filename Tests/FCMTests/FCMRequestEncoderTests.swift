import FCM
import HTTP2
import OutboxCore
import Support
import Testing

@Suite struct FCMRequestEncoderTests {
    @Test func `a request has Google's headers and path`() {
        let encoded = MadePush.android().encodedForFCM()
        #expect(encoded.headers() == ["authorization": "Bearer test", "content-type": "application/json"])
        #expect(encoded.text(encoded.batch.requests[0].path) == "/v1/projects/postbell-demo/messages:send")
        let sensitive = encoded.batch.sharedHeaders[0].filter(\.isSensitive).map(\.name)
        #expect(sensitive == ["authorization"])
        #expect(encoded.batch.requests[0].fieldCount == 0)
    }

    @Test func `the token alone differs between the targets of a notification`() {
        var push = MadePush.android()
        push.tokens = ["first-token:a", "second-token:b"]
        let encoded = push.encodedForFCM()
        let bodies = encoded.batch.requests.map { encoded.text($0.body) }
        #expect(bodies[0].contains("\"token\":\"first-token:a\""))
        #expect(bodies[0].replacing("first-token:a", with: "second-token:b") == bodies[1])
        #expect(encoded.batch.requests.map(\.tag) == [0, 1])
        #expect(encoded.batch.sharedHeaders.count == 1)
        #expect(Set(encoded.batch.requests.map(\.path.start)).count == 1)
    }

    @Test func `notifications of one batch share headers and path, and a new access token does not leak into old ones`()
    {
        var encoder = FCMRequestEncoder(project: "p")
        encoder.setAuthorization("Bearer one")
        var first = MadePush.Encoded()
        MadePush.android().encode(with: &encoder, into: &first)
        MadePush.android().encode(with: &encoder, into: &first)
        #expect(first.batch.sharedHeaders.count == 1)
        encoder.setAuthorization("Bearer two")
        MadePush.android().encode(with: &encoder, into: &first)
        #expect(first.headers(1)["authorization"] == "Bearer one")
        #expect(first.headers(2)["authorization"] == "Bearer two")
        var second = MadePush.Encoded()
        MadePush.android().encode(with: &encoder, into: &second)
        #expect(second.headers()["authorization"] == "Bearer two")
        #expect(second.text(second.batch.requests[0].path) == "/v1/projects/p/messages:send")
    }

    @Test(arguments: [
        "", "seven77", String(repeating: "a", count: 1025), "with space:abc", "new\nline:abc", "umlaut-ü:abc",
        "delete\u{7F}:abc", "nul\u{0}:abcd",
    ])
    func `a malformed token is dead without a request`(token: String) throws {
        var push = MadePush.android()
        push.tokens = [token, MadePush.token]
        let encoded = push.encodedForFCM()
        let refusal = try #require(encoded.targetRefusals.first)
        #expect(refusal == Outcome(.unregistered, reason: "token_malformed", proof: .proven))
        #expect(encoded.batch.requests.map(\.tag) == [1])
    }

    @Test func `odd tokens of printable ASCII are passed on, escaped`() {
        var push = MadePush.android()
        push.tokens = ["quote\"back\\slash", "<script>&%/?#", String(repeating: "a", count: 1024)]
        let encoded = push.encodedForFCM()
        #expect(encoded.targetRefusals.isEmpty)
        #expect(encoded.text(encoded.batch.requests[0].body).contains(#""token":"quote\"back\\slash""#))
        #expect(encoded.text(encoded.batch.requests[1].body).contains(#""token":"<script>&%/?#""#))
    }

    /// Firebase's pattern for installation ids: `[cdef]` and 21 more of base64url.
    @Test(arguments: [
        ("cJ2k4n6p8r0t2v4x6z8B0d", "fid"), ("fJ2k4n6p8r0t2v4x6z8B-_", "fid"), ("gJ2k4n6p8r0t2v4x6z8B0d", "token"),
        ("bJ2k4n6p8r0t2v4x6z8B0d", "token"), ("cJ2k4n6p8r0t2v4x6z8B0", "token"),
        ("cJ2k4n6p8r0t2v4x6z8B0dd", "token"), ("cJ2k4n6p8r0t2v4x6z8B0:", "token"),
    ])
    func `an installation id has a field of its own`(token: String, field: String) {
        var push = MadePush.android()
        push.tokens = [token]
        #expect(push.encodedForFCM().body.hasPrefix("{\"message\":{\"\(field)\":\"\(token)\","))
    }

    @Test(arguments: [
        (Duration?.none, "3601s"), (.some(.zero), "0s"), (.seconds(86_400), "86400s"), (.milliseconds(300), "1s"),
        (.seconds(28 * 86_400), "2419200s"), (.seconds(28 * 86_400 + 1), "2419200s"), (.seconds(-5), "0s"),
    ])
    func `the life is the deadline's or the kind's in whole seconds, and 28 days at most`(
        life: Duration?, ttl: String
    ) {
        let kind = Kind(number: 1, name: "k", presentation: .template(Template(title: nil)), providerLife: life)
        #expect(MadePush.android(kind).encodedForFCM().body.contains("\"ttl\":\"\(ttl)\""))
    }

    @Test func `a deadline beyond 28 days or in the past is bounded`() {
        var push = MadePush.android()
        push.expiresAt = push.now + .seconds(60 * 86_400)
        #expect(push.encodedForFCM().body.contains("\"ttl\":\"2419200s\""))
        push.expiresAt = push.now + .seconds(-1)
        #expect(push.encodedForFCM().body.contains("\"ttl\":\"0s\""))
    }

    @Test(arguments: [(10, false, "HIGH"), (10, true, "NORMAL"), (5, false, "NORMAL"), (1, false, "NORMAL")])
    func `only what is loud and of the highest priority wakes a device`(priority: Int, silent: Bool, expected: String) {
        var push = MadePush.android(
            Kind(number: 1, name: "k", presentation: .template(Template(title: nil)), priority: priority))
        push.silent = silent
        #expect(push.encodedForFCM().body.contains("\"android\":{\"priority\":\"\(expected)\","))
    }

    @Test func `no collapse key is sent unless a raw message has one`() {
        var push = MadePush.android()
        push.collapseKey = "thread-7"
        let body = push.encodedForFCM().body
        #expect(!body.contains("collapse") && body.contains("\"tag\":\"thread-7\""))
        #expect(
            MadePush.raw(#"{"android":{"collapse_key":"k"}}"#).encodedForFCM().body.contains(#""collapse_key":"k""#))
    }
}
