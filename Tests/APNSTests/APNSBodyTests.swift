import APNS
import Foundation
import OutboxCore
import Support
import Testing

@Suite struct APNSBodyTests {
    @Test func `texts, identifiers and everything that a kind says stand where Apple looks for them`() {
        var push = MadePush.template(title: "Allow {tool_name}?", subtitle: "{place}", body: "By {who}") {
            title, subtitle, body in
            Kind(
                number: 1, name: "approval",
                presentation: .template(
                    Template(title: title, subtitle: subtitle, body: body)),
                container: "b", interruptionLevel: "time-sensitive", category: "APPROVAL", sound: "default",
                usesThread: true, isMutable: true)
        }
        push.payload = "{\"tool_name\": \"ls\", \"place\":\"home\", \"who\":\"Zoë \\\"Z\\\"\", \"n\": 7}"
        push.thread = "conversation-1"
        push.badge = 3
        let expected = """
            {"aps":{"alert":{"title":"Allow ls?","subtitle":"home","body":"By Zoë \\"Z\\""},"badge":3,\
            "sound":"default","thread-id":"conversation-1","category":"APPROVAL","interruption-level":"time-sensitive",\
            "mutable-content":1},"b":{"tool_name":"ls","place":"home","who":"Zoë \\"Z\\"","n":7}}
            """
        #expect(push.encoded().body == expected)
    }

    @Test func `what is absent is absent`() {
        #expect(MadePush.template(body: "hello").encoded().body == "{\"aps\":{\"alert\":{\"body\":\"hello\"}}}")
        #expect(MadePush.template().encoded().body == "{\"aps\":{}}")
        var push = MadePush.template(title: "{gone}")
        push.payload = "{\"here\":\"x\",\"nothing\":null}"
        #expect(push.encoded().body == "{\"aps\":{},\"here\":\"x\"}")
    }

    @Test func `without a container identifiers stand at the top, and none can pose as aps`() {
        var push = MadePush.template(body: "hello")
        push.payload = "{\"aps\":{\"badge\":99},\"id\":\"7\"}"
        #expect(push.encoded().body == "{\"aps\":{\"alert\":{\"body\":\"hello\"}},\"id\":\"7\"}")
    }

    @Test func `silence takes the sound and the urgency away`() {
        var push = MadePush.template(body: "hello") { title, subtitle, body in
            Kind(
                number: 1, name: "k", presentation: .template(Template(title: title, subtitle: subtitle, body: body)),
                interruptionLevel: "time-sensitive", sound: "default")
        }
        push.silent = true
        let encoded = push.encoded()
        #expect(encoded.body == "{\"aps\":{\"alert\":{\"body\":\"hello\"},\"interruption-level\":\"passive\"}}")
        #expect(encoded.headers()["apns-priority"] == "5")
    }

    @Test func `a background push shows nothing, whatever its kind says`() {
        var push = MadePush.template(body: "hello") { title, subtitle, body in
            Kind(
                number: 1, name: "k", presentation: .template(Template(title: title, subtitle: subtitle, body: body)),
                container: "b", pushType: "background", category: "X", sound: "default")
        }
        push.payload = "{\"id\":1}"
        push.badge = 5
        let encoded = push.encoded()
        #expect(encoded.body == "{\"aps\":{\"content-available\":1},\"b\":{\"id\":1}}")
        #expect(encoded.headers()["apns-priority"] == "5")
    }

    @Test func `a badge of zero clears it`() {
        var push = MadePush.template()
        push.badge = 0
        #expect(push.encoded().body == "{\"aps\":{\"badge\":0}}")
    }

    @Test func `a raw kind's own body goes out word for word`() {
        var push = MadePush(kind: Kind(number: 1, name: "k", presentation: .raw, pushType: "liveactivity"))
        push.payload = "{\"fcm\":{}, \"apns\" : {\"aps\": {\"event\":\"update\", \"timestamp\":1}} }"
        #expect(push.encoded().body == "{\"aps\": {\"event\":\"update\", \"timestamp\":1}}")
        for payload in ["{\"fcm\":{}}", "{\"apns\":\"{}\"}", "{\"apns\":[]}", "[]", "", "{\"apns\":{}"] {
            push.payload = payload
            let refusal = push.encoded().refusal
            #expect(refusal?.kind == .rejected && refusal?.reason == "payload_malformed")
        }
    }

    @Test func `whatever the texts hold, the body is JSON and comes out as it went in`() throws {
        let odd = "quote \" back \\ slash / tab \t line \n nul-free \u{1} emoji 🎉 \u{2028}"
        var push = MadePush.template(title: odd.replacingOccurrences(of: "{", with: "{{"), body: "{value}") {
            title, subtitle, body in
            Kind(
                number: 1, name: "k", presentation: .template(Template(title: title, subtitle: subtitle, body: body)),
                container: "odd \" key", category: odd, usesThread: true)
        }
        let value = try JSONSerialization.data(withJSONObject: ["value": odd])
        push.payload = String(decoding: value, as: UTF8.self)
        push.thread = odd
        let body = push.encoded().body
        let object = try #require(try JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any])
        let aps = try #require(object["aps"] as? [String: Any])
        let alert = try #require(aps["alert"] as? [String: String])
        #expect(alert == ["title": odd, "body": odd])
        #expect(aps["category"] as? String == odd)
        #expect(aps["thread-id"] as? String == odd)
        #expect((object["odd \" key"] as? [String: String])?["value"] == odd)
        #expect(!body.contains("\n"))
    }
}
