import FCM
import HTTP2
import OutboxCore
import Support
import Testing

@Suite struct DiscoveryDocumentTests {
    private let document: DiscoveryDocument

    init() throws {
        document = try DiscoveryDocument()
    }

    private static func kinds() -> [Kind] {
        let texts: [Template] = [
            Template(title: nil), Template(title: TemplateText("Hello"), body: TemplateText("from {who}, \"{n}\"")),
            Template(title: TemplateText("a"), subtitle: TemplateText("b"), body: TemplateText("c\n\\ü")),
        ]
        var kinds: [Kind] = []
        for text in texts {
            for priority in [10, 5, 1] {
                for life in [nil, Duration.zero, .seconds(86_400), .seconds(40 * 86_400)] {
                    kinds.append(
                        Kind(
                            number: 1, name: "k", presentation: .template(text), container: "b",
                            pushType: priority == 10 ? "alert" : "background", priority: priority,
                            interruptionLevel: "time-sensitive", category: "C \"1\"", sound: "default",
                            usesThread: true, isMutable: true, providerLife: life))
                }
            }
        }
        return kinds
    }

    @Test func `every request that the encoder makes of a template is one of Google's schema`() {
        var checked = 0
        for kind in Self.kinds() {
            for silent in [false, true] {
                var push = MadePush.android(kind)
                push.silent = silent
                push.badge = silent ? 0 : 3
                push.thread = "thread \"7\""
                push.collapseKey = "key\\7"
                push.tokens = [MadePush.token, "fJ2k4n6p8r0t2v4x6z8B0d", "quote\"back\\slash"]
                push.payload =
                    #"{"who":"\u00fc \"x\"","n":-7,"yes":true,"none":null,"list":[1,"a"],"deep":{"a":{"b":1}},"#
                    + #""title":"mine"}"#
                let encoded = push.encodedForFCM()
                #expect(encoded.refusal == nil && encoded.targetRefusals.isEmpty)
                for request in encoded.batch.requests {
                    #expect(document.faults(inRequest: encoded.text(request.body)) == [])
                    checked += 1
                }
            }
        }
        #expect(checked == 216)
    }

    /// Kinds with keys of the app's, with a dictionary, with a message that is theirs alone, and with a badge alone.
    private static let forms: [(kind: Kind, data: String)] = {
        let keys = Template(
            lines: LocalizedText("TITLE").map { .localized($0) }, nil,
            LocalizedText("BODY(who,n)").map { .localized($0) }, isLocalized: true)
        let plain = Template(title: TemplateText("x"))
        let members = [
            DataMember("v", .constant(Array("1".utf8))), DataMember("title", .constant(Array(#""a \"b\"""#.utf8))),
            DataMember("w", .payload("who")), DataMember("gone", .payload("gone")),
            DataMember("deep", .payload("deep")),
            DataMember("nid", .own(.id)), DataMember("i", .own(.instance)), DataMember("q", .own(.silent)),
        ]
        let values = #""w":"\u00fc \"x\"","deep":"{\"a\":1}","nid":"ID","q":"0""#
        return [
            (
                Kind(number: 1, name: "k", presentation: .template(keys), data: []),
                #""title_loc_key":"TITLE","body_loc_key":"BODY","#
                    + #""body_loc_args":"[\"\\u00fc \\\"x\\\"\",\"-7\"]","badge":"3""#
            ),
            (
                Kind(number: 1, name: "k", presentation: .template(plain), container: "b", data: members),
                #""title":"x","badge":"3","v":"1","payload.title":"a \"b\"",\#(values)"#
            ),
            (
                Kind(number: 1, name: "k", presentation: .template(keys), data: members, fcmData: members),
                #""v":"1","title":"a \"b\"",\#(values)"#
            ),
            (
                Kind(number: 1, name: "k", presentation: .template(Template(lines: nil, nil, nil, isBadgeOnly: true))),
                #""badge":"3""#
            ),
        ]
    }()

    @Test(arguments: forms) func `every form of a kind becomes a request of Google's schema`(kind: Kind, data: String) {
        var push = MadePush.android(kind)
        push.badge = 3
        push.payload = #"{"who":"\u00fc \"x\"","n":-7,"gone":null,"deep":{"a":1}}"#
        let body = push.encodedForFCM().body
        #expect(document.faults(inRequest: body) == [])
        let own = kind.fcmData == nil ? #""notification_id":"ID","# : ""
        let identifier = "0189c4ce-7e2c-7bd5-9f8c-7f5a3a1b2c3d"
        #expect(body.replacing(identifier, with: "ID").contains("\"data\":{\(own)\(data)}"), "\(body)")
    }

    @Test(arguments: [
        #"{"data":{"a":"1"}}"#, #"{}"#, #"{"android":{}}"#,
        #"{"notification":{"title":"t","body":"b"},"android":{"collapse_key":"k","priority":"high","ttl":"1s"}}"#,
        #"{"android":{"notification":{"channel_id":"c","notification_count":3,"sticky":true}},"data":{}}"#,
        #"{"apns":{"headers":{"apns-priority":"5"},"payload":{"aps":{"content-available":1}}}}"#,
        #"{"webpush":{"headers":{"TTL":"5"}},"fcm_options":{"analytics_label":"x"}}"#,
    ])
    func `a raw message in Google's schema stays in it`(message: String) {
        let encoded = MadePush.raw(message).encodedForFCM()
        #expect(encoded.batch.requests.count == 1)
        #expect(document.faults(inRequest: encoded.body) == [])
    }

    @Test func `requests go to the path of Google's method`() {
        let encoded = MadePush.android().encodedForFCM()
        let path = document.paths["fcm.projects.messages.send"]
        #expect(path == "v1/{+parent}/messages:send")
        #expect(
            encoded.text(encoded.batch.requests[0].path)
                == "/" + (path ?? "").replacing("{+parent}", with: "projects/postbell-demo"))
    }

    /// The check itself is worth nothing if it takes everything.
    @Test(arguments: [
        ("", "no JSON"), ("[]", "no object"), (#"{"message":{}}"#, "has 0 targets"),
        (#"{"message":{"token":"t","topic":"x"}}"#, "has 2 targets"),
        (#"{"message":{"token":7}}"#, "no string"),
        (#"{"message":{"token":"t","data":{"a":1}}}"#, "request.message.data.a: no string"),
        (#"{"message":{"token":"t","data":{"a":{"b":"c"}}}}"#, "request.message.data.a: no string"),
        (#"{"message":{"token":"t","data":["a"]}}"#, "no object"),
        (#"{"message":{"token":"t","colour":"red"}}"#, "cannot find field colour"),
        (#"{"message":{"token":"t","android":{"priority":"URGENT"}}}"#, "not one of"),
        (#"{"message":{"token":"t","android":{"ttl":"1 day"}}}"#, "no duration"),
        (#"{"message":{"token":"t","android":{"ttl":60}}}"#, "no string"),
        (#"{"message":{"token":"t","android":{"notification":{"sticky":"yes"}}}}"#, "no boolean"),
        (#"{"message":{"token":"t","android":{"notification":{"notification_count":"3"}}}}"#, "no number"),
        (#"{"message":{"token":"t","android":{"notification":{"notification_count":true}}}}"#, "no number"),
        (#"{"message":{"token":"t","android":{"notification":{"body_loc_args":"a"}}}}"#, "no array"),
        (#"{"message":{"token":"t","android":{"notification":{"event_time":"today"}}}}"#, "no time"),
        (#"{"validate_only":0,"message":{"token":"t"}}"#, "no boolean"),
        (#"{"to":"t"}"#, "cannot find field to"),
    ])
    func `the check finds what is wrong`(body: String, fault: String) {
        let faults = document.faults(inRequest: body)
        #expect(faults.contains { $0.contains(fault) }, "found \(faults)")
    }

    @Test func `the check takes Google's spelling and the other one`() {
        for key in ["collapseKey", "collapse_key"] {
            #expect(
                document.faults(inRequest: #"{"message":{"fid":"f","android":{"\#(key)":"k","ttl":"3.5s"}}}"#) == [])
        }
    }
}
