import Support
import Testing

/// Bounded lists of ids in a payload: what is one, and what becomes of it on the wire.
@Suite(.timeLimit(.minutes(5)))
struct ListTests {
    private static let first = "0196f6a1-0000-7000-8000-000000000001"
    private static let second = "0196F6A1-0000-7000-8000-000000000002"

    private static func define(
        _ type: String, _ presentation: String = "template", content: String = #"{"title": "x"}"#
    ) -> String {
        "SELECT postbell.define_kind('list', '\(presentation)', '{\"ids\": \"\(type)\"}', '\(content)')"
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A list has a bound, and holds ids and nothing else`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for type in ["uuids?", "uuids(0)?", "uuids(101)?", "uuids(-1)?", "uuids(x)?", "uuids(2)", "ints(2)?"] {
                #expect(await outbox.admin.refusal(Self.define(type)) == "PB201", "\(type)")
            }
            #expect(await outbox.admin.refusal(Self.define("uuids(100)?")) == nil)
            try await outbox.run(Self.define("uuids(2)!"))
            let (one, two) = ("\"\(Self.first)\"", "\"\(Self.second)\"")
            let values: [(state: String?, list: String)] = [
                (nil, "[\(one)]"), (nil, "[\(one),\(two)]"), (nil, " [ \(one) ,\\n\\t\(two) ] "),
                ("PB003", "[\(one),\(two),\(one)]"), ("PB003", "[]"), ("PB003", one), ("PB003", "[[\(one)]]"),
                ("PB003", "[1]"), ("PB003", "[null]"), ("PB003", "null"), ("PB003", "{}"), ("PB003", #"["sesame"]"#),
                ("PB003", "[\(one),\"\"]"), ("PB003", #"["\u0030196f6a1-0000-7000-8000-000000000001"]"#),
                ("PB003", "[\(one), \"sesame\"]"), ("PB007", "[\(one),]"), ("PB007", "[\(one)"),
            ]
            for (index, value) in values.enumerated() {
                let list = value.list.replacing(#"\n\t"#, with: "\n\t")
                let call = "SELECT postbell.enqueue('list', 'anna', 'k\(index)', '{\"ids\": \(list)}')"
                #expect(await outbox.admin.refusal(call) == value.state, "\(value.list)")
            }
            #expect(
                await outbox.admin.refusal("SELECT postbell.enqueue('list', 'anna', 'none')") == "PB002")
        }
    }

    @Test func `A list is carried and never shown`() async throws {
        try await Outbox.on(.postgres15) { outbox in
            let refused = [
                Self.define("uuids(2)!", content: #"{"title": "of {ids}"}"#),
                Self.define("uuids(2)!", "localized", content: #"{"title": "T(ids)"}"#),
                Self.define("uuids(2)!", content: #"{"title": "x", "labels": {"ids": {"*": "y"}}}"#),
                """
                SELECT postbell.define_kind('list', 'code', '{"c": "code!", "ids": "uuids(2)?"}',
                    '{"title": "x", "data": {"c": "{c}", "mv": "{$mapping}"}}', mutable_content => true)
                """,
            ]
            for call in refused { #expect(await outbox.admin.refusal(call) == "PB205", "\(call)") }
            let shown = #"{"title": {"by": "ids", "absent": "none", "else": "some"}, "data": {"list": "{ids}"}}"#
            #expect(await outbox.admin.refusal(Self.define("uuids(2)?", content: shown)) == nil)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A list is JSON on Apple's side, and ids with commas between them on Google's`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.define("uuids(100)?", content: #"{"title": "x", "container": "b"}"#))
            let payload = "'{\"ids\": [ \"\(Self.first)\" , \"\(Self.second)\" ]}'"
            let plain = try await Wire.of("list", ["payload": payload], in: outbox)
            #expect(plain.apns.hasSuffix(#","b":{"ids":[ "\#(Self.first)" , "\#(Self.second)" ]}}"#), "\(plain.apns)")
            #expect(plain.fcm.contains(#","ids":"\#(Self.first),\#(Self.second)"}"#), "\(plain.fcm)")
            try await outbox.run(Self.define("uuids(100)?", content: #"{"title": "x", "data": {"gone": "{ids}"}}"#))
            let renamed = try await Wire.of("list", ["payload": payload], in: outbox)
            #expect(renamed.apns.hasSuffix(#","gone":[ "\#(Self.first)" , "\#(Self.second)" ]}"#), "\(renamed.apns)")
            #expect(renamed.fcm.contains(#","gone":"\#(Self.first),\#(Self.second)"}"#), "\(renamed.fcm)")
            // A hundred of them are 3699 bytes; with another 400 it is more than FCM takes.
            let many = "json_build_object('ids', ARRAY(SELECT gen_random_uuid() FROM generate_series(1, 100)))::text"
            #expect(try await Wire.of("list", ["payload": many], in: outbox).fcm.utf8.count > 3699)
            let long = String(repeating: "y", count: 400)
            try await outbox.run(Self.define("uuids(100)?", content: #"{"title": "\#(long)"}"#))
            let larger = try await Wire.of("list", ["payload": many], in: outbox)
            #expect(larger.fcm == "payload_too_large", "\(larger.fcm)")
        }
    }
}
