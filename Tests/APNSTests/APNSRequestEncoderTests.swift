import APNS
import Foundation
import HTTP2
import OutboxCore
import Support
import Testing

@Suite struct APNSRequestEncoderTests {
    @Test func `a request has Apple's headers and path`() {
        var push = MadePush.template(body: "hello")
        push.collapseKey = "thread-7"
        let encoded = push.encoded()
        #expect(
            encoded.headers() == [
                "authorization": "bearer test", "apns-topic": "com.example.app", "apns-push-type": "alert",
                "apns-priority": "10", "apns-id": "0189c4ce-7e2c-7bd5-9f8c-7f5a3a1b2c3d",
                "apns-expiration": "1700003601", "apns-collapse-id": "thread-7",
            ])
        #expect(encoded.text(encoded.batch.requests[0].path) == "/3/device/" + push.tokens[0])
        let sensitive = encoded.batch.sharedHeaders[0].filter(\.isSensitive).map(\.name)
        #expect(sensitive == ["authorization"])
    }

    @Test func `no collapse key, no header`() {
        #expect(MadePush.template(body: "hello").encoded().headers()["apns-collapse-id"] == nil)
    }

    @Test(arguments: [
        ("k", "k"), (String(repeating: "x", count: 64), String(repeating: "x", count: 64)),
        // SHA-256 in base64url, computed by Python's hashlib.
        (String(repeating: "x", count: 65), "lTfF_fEgSC99WNJentWD9SwCtOME6oFNsWM61WWu1-k"),
        ("Grüße", "-D4Dl5bGRToQ9VGeOf0ROQFXIxahqOoHy1JdKAHf0HQ"),
        ("two words", "oD8dYRZF61OtFsGvVGygeS3IhFBbq1ft6A9NrWuRHTo"),
    ])
    func `a collapse key that Apple would refuse is sent as its digest`(key: String, expected: String) {
        var push = MadePush.template(body: "hello")
        push.collapseKey = key
        #expect(push.encoded().headers()["apns-collapse-id"] == expected)
    }

    @Test func `expiration is the deadline, the kind's own life from now, or zero for now or never`() {
        func kind(_ life: Duration?) -> Kind {
            Kind(number: 1, name: "k", presentation: .template(Template(title: nil)), providerLife: life)
        }
        #expect(MadePush(kind: kind(nil)).encoded().headers()["apns-expiration"] == "1700003601")
        #expect(MadePush(kind: kind(.zero)).encoded().headers()["apns-expiration"] == "0")
        #expect(MadePush(kind: kind(.seconds(86_400))).encoded().headers()["apns-expiration"] == "1700086400")
    }

    @Test(arguments: [
        ("alert", "com.example.app"), ("background", "com.example.app"), ("voip", "com.example.app.voip"),
        ("complication", "com.example.app.complication"),
        ("fileprovider", "com.example.app.pushkit.fileprovider"), ("mdm", "com.example.app"),
        ("location", "com.example.app.location-query"),
        ("liveactivity", "com.example.app.push-type.liveactivity"), ("pushtotalk", "com.example.app.voip-ptt"),
        ("widgets", "com.example.app.push-type.widgets"), ("controls", "com.example.app.push-type.controls"),
    ])
    func `each push type has its topic`(type: String, topic: String) {
        let push = MadePush(
            kind: Kind(number: 1, name: "k", presentation: .template(Template(title: nil)), pushType: type))
        let headers = push.encoded().headers()
        #expect(headers["apns-topic"] == topic)
        #expect(headers["apns-push-type"] == type)
        #expect(headers["apns-priority"] == (type == "background" ? "5" : "10"))
    }

    @Test(arguments: ["", "0", "00fc1", "<00fc13ad>", "00fc 13ad", "00fc13ag", "{length=32}", "00fc13a\u{e4}"])
    func `a token that Apple never issued is refused without a request`(token: String) {
        var push = MadePush.template(body: "hello")
        push.tokens = [token]
        let encoded = push.encoded()
        #expect(encoded.batch.requests.isEmpty)
        let outcome = encoded.targetRefusals.first
        #expect(outcome?.kind == .unregistered)
        #expect(outcome?.reason == "token_malformed")
        #expect(outcome?.proof == .proven)
        #expect(outcome?.status == 0)
    }

    @Test func `tokens up to 400 digits pass, in lower case`() {
        var push = MadePush.template(body: "hello")
        push.tokens = [String(repeating: "aB09", count: 100), String(repeating: "ab", count: 201), "AbCdEf0123456789"]
        let encoded = push.encoded()
        #expect(
            encoded.batch.requests.map { encoded.text($0.path) } == [
                "/3/device/" + String(repeating: "ab09", count: 100), "/3/device/abcdef0123456789",
            ])
        #expect(encoded.batch.requests.map(\.tag) == [0, 2])
        #expect(encoded.targetRefusals.count == 1)
    }

    @Test func `targets of one notification share its body, and notifications share their headers`() {
        var encoder = APNSRequestEncoder(topics: ["com.example.app"])
        encoder.setAuthorization("bearer test")
        var result = MadePush.Encoded()
        var push = MadePush.template(body: "hello")
        push.tokens = ["aa", "bb", "cc"]
        push.encode(with: &encoder, into: &result)
        push.encode(with: &encoder, into: &result)
        #expect(result.batch.requests.count == 6)
        #expect(Set(result.batch.requests.map(\.body.start)).count == 2)
        #expect(result.batch.sharedHeaders.count == 1)
        push.silent = true
        push.encode(with: &encoder, into: &result)
        #expect(result.batch.sharedHeaders.count == 2)
        #expect(result.headers(8)["apns-priority"] == "5")
        encoder.setAuthorization("bearer new")
        var next = MadePush.Encoded()
        push.encode(with: &encoder, into: &next)
        #expect(next.headers()["authorization"] == "bearer new")
        #expect(next.batch.sharedHeaders.count == 1)
    }

    @Test func `an app that the credential does not cover holds its target alone`() {
        var push = MadePush.template(body: "hello")
        push.app = "com.example.other"
        let outcome = push.encoded().refusal
        #expect(outcome?.kind == .misconfigured && outcome?.scope == .target && outcome?.reason == "no_credential")
    }

    @Test(arguments: [("alert", 4096), ("voip", 5120)])
    func `the limit counts the true bytes of the body`(type: String, limit: Int) {
        func push(_ bytes: Int) -> MadePush {
            let frame = "{\"x\":\"ü\"}".utf8.count
            var push = MadePush(kind: Kind(number: 1, name: "k", presentation: .raw, pushType: type))
            push.payload = "{\"apns\":{\"x\":\"ü\(String(repeating: "y", count: bytes - frame))\"}}"
            return push
        }
        #expect(push(limit).encoded().body.utf8.count == limit)
        let refusal = push(limit + 1).encoded().refusal
        #expect(refusal?.kind == .rejected && refusal?.reason == "payload_too_large")
    }

    @Test func `the bearer is not in any description`() throws {
        let encoded = MadePush.template(body: "hello").encoded()
        #expect(encoded.refusal == nil)
        let outcome = try #require(MadePush(app: "com.example.other").encoded().refusal)
        #expect(!"\(outcome)".contains("bearer"))
    }
}
