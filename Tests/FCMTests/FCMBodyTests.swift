import FCM
import Foundation
import HTTP2
import OutboxCore
import Support
import Testing

@Suite struct FCMBodyTests {
    private static func data(_ push: MadePush) throws -> [String: String] {
        let encoded = push.encodedForFCM()
        let body = try JSONSerialization.jsonObject(with: Data(encoded.body.utf8)) as? [String: Any]
        let message = try #require(body?["message"] as? [String: Any])
        return try #require(message["data"] as? [String: String])
    }

    private static func kind(_ change: (Template) -> Kind) -> Kind {
        change(
            Template(
                title: TemplateText("Allow {tool}?"), subtitle: TemplateText("{n} steps"), body: TemplateText("{who}")))
    }

    private static let payload = #"{"tool":"mail.send","n":3,"who":"A \"B\" \u00e9\n","ok":true,"gone":null}"#

    @Test func `data holds the texts, what the app needs to show them, and the payload, all as strings`() throws {
        var push = MadePush.android(
            Self.kind {
                Kind(
                    number: 1, name: "k", presentation: .template($0), container: "veetbot", category: "C",
                    sound: "default", usesThread: true)
            })
        push.payload = Self.payload
        push.thread = "session:1"
        push.collapseKey = "approval:1"
        push.badge = 0
        #expect(
            try Self.data(push) == [
                "notification_id": "0189c4ce-7e2c-7bd5-9f8c-7f5a3a1b2c3d", "title": "Allow mail.send?",
                "subtitle": "3 steps", "body": "A \"B\" é\n", "badge": "0", "sound": "default", "thread": "session:1",
                "category": "C", "tag": "approval:1", "tool": "mail.send", "n": "3", "who": "A \"B\" é\n",
                "ok": "true",
            ])
    }

    @Test func `silence is said, has no sound, and wins over the kind`() throws {
        var push = MadePush.android(
            Self.kind { Kind(number: 1, name: "k", presentation: .template($0), sound: "default") })
        push.payload = Self.payload
        push.silent = true
        let data = try Self.data(push)
        #expect(data["silent"] == "1" && data["sound"] == nil && data["title"] == "Allow mail.send?")
    }

    @Test func `a background notification carries identifiers and nothing to show`() throws {
        var push = MadePush.android(
            Self.kind {
                Kind(number: 1, name: "k", presentation: .template($0), pushType: "background", sound: "default")
            })
        push.payload = Self.payload
        push.badge = 4
        #expect(Set(try Self.data(push).keys) == ["notification_id", "tool", "n", "who", "ok"])
    }

    @Test func `what is absent stays absent, and a thread is only used where the kind groups by it`() throws {
        var push = MadePush.android()
        push.thread = "session:1"
        #expect(try Self.data(push) == ["notification_id": "0189c4ce-7e2c-7bd5-9f8c-7f5a3a1b2c3d"])
    }

    @Test func `a payload key that has the name of one of Postbell's own steps aside`() throws {
        var push = MadePush.android(Self.kind { Kind(number: 1, name: "k", presentation: .template($0)) })
        push.payload = #"{"tool":"x","title":"mine","badge":7,"tag":"t"}"#
        let data = try Self.data(push)
        #expect(data["title"] == "Allow x?" && data["payload.title"] == "mine")
        #expect(data["payload.badge"] == "7" && data["badge"] == nil && data["payload.tag"] == "t")
    }

    @Test(arguments: ["from", "message_type", "google", "google.c.a", "gcm", "gcm.n.e", "gcmx"])
    func `a key of Google's own refuses the notification without a request`(key: String) {
        var push = MadePush.android()
        push.payload = "{\"\(key)\":\"x\"}"
        let encoded = push.encodedForFCM()
        #expect(encoded.refusal == Outcome(.rejected, reason: "payload_key_reserved"))
        #expect(encoded.batch.requests.isEmpty)
    }

    @Test(arguments: ["sender", "From", "my_google", "message_types", "collapse_key"])
    func `keys that only resemble Google's are taken`(key: String) {
        var push = MadePush.android()
        push.payload = "{\"\(key)\":\"x\"}"
        #expect(push.encodedForFCM().body.contains("\"\(key)\":\"x\""))
    }

    @Test(arguments: ["", "[]", "7", "{\"a\":", "{\"a\"}", "{} {}"])
    func `a payload that is no object is refused without a request`(payload: String) {
        var push = MadePush.android()
        push.payload = payload
        #expect(push.encodedForFCM().refusal == Outcome(.rejected, reason: "payload_malformed"))
        push.kind = Kind(number: 1, name: "k", presentation: .raw)
        #expect(push.encodedForFCM().refusal == Outcome(.rejected, reason: "payload_malformed"))
    }

    // notification_id and its value take 51 bytes, the key 1.
    @Test(arguments: [("x", 4044), (#"\u00e9"#, 2022), (#"\ud83d\ude00"#, 1011), (#"\n"#, 4044), ("é", 2022)])
    func `4096 bytes of keys and values are taken, and one more is not`(character: String, count: Int) {
        var push = MadePush.android()
        push.payload = "{\"k\":\"\(String(repeating: character, count: count))\"}"
        #expect(push.encodedForFCM().refusal == nil)
        push.payload = "{\"k\":\"\(String(repeating: character, count: count))x\"}"
        #expect(push.encodedForFCM().refusal == Outcome(.rejected, reason: "payload_too_large"))
    }

    @Test func `a raw message is passed on word for word, with target, priority and life of ours`() {
        var push = MadePush.raw(#"{"data":{"a": "1"},"android":{"ttl":"9s","priority":"high","direct_boot_ok":true}}"#)
        push.silent = true
        #expect(
            push.encodedForFCM().body == "{\"message\":{\"token\":\"\(MadePush.token)\",\"data\":{\"a\": \"1\"},"
                + "\"android\":{\"priority\":\"NORMAL\",\"ttl\":\"3601s\",\"direct_boot_ok\":true}}}")
    }

    @Test(arguments: [
        #"{"token":"other"}"#, #"{"topic":"all"}"#, #"{"condition":"'a' in topics"}"#, #"{"fid":"x"}"#,
        #"{"\u0074oken":"other"}"#, #"{"data":{},"android":[]}"#, #"{"data":"x"}"#, #"{"notification":[]}"#,
        #"{"android":{"\u0074tl":"9s"}}"#, #"{"android":{},"android":{}}"#, #"{"name":"x"}"#, #"{"unheard":1}"#,
    ])
    func `a raw message that addresses somebody else, or is none, is refused without a request`(message: String) {
        let encoded = MadePush.raw(message).encodedForFCM()
        #expect(encoded.refusal == Outcome(.rejected, reason: "payload_malformed"))
        #expect(encoded.batch.requests.isEmpty)
    }

    @Test func `the size of a raw message counts data and notification`() {
        let half = String(repeating: "x", count: 2040)
        let taken = "{\"data\":{\"k\":\"\(half)\"},\"notification\":{\"title\":\"\(half)\"}}"
        #expect(MadePush.raw(taken).encodedForFCM().refusal == nil)
        let large = taken.replacing("\"k\"", with: "\"\(String(repeating: "k", count: 20))\"")
        #expect(MadePush.raw(large).encodedForFCM().refusal == Outcome(.rejected, reason: "payload_too_large"))
    }

    @Test func `a raw notification without a message for FCM is refused`() {
        var push = MadePush.raw("{}")
        push.payload = #"{"apns":{"aps":{}}}"#
        #expect(push.encodedForFCM().refusal == Outcome(.rejected, reason: "payload_malformed"))
    }
}
