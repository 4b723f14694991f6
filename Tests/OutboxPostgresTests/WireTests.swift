import Support
import Testing

@testable import OutboxPostgres

/// What goes out for a kind of each form, byte for byte: from `define_kind` and an insert to both providers.
@Suite(.timeLimit(.minutes(5)))
struct WireTests {
    private static let run = "0196f6a1-0000-7000-8000-000000000000"

    /// A kind with everything that a template can have.
    private static let report = #"""
        SELECT postbell.define_kind('report', 'template',
            '{"run": "uuid!", "status": "enum(done,failed,stopped)!", "tool": "slug?",
              "signal": "slug?", "name": "text(20)?"}',
            '{"title": "Run {{ended}}", "subtitle": "{name}",
              "body": {"by": "status", "cases": {
                  "done": {"by": "tool", "absent": "All \"well\"", "else": "{tool} is done"},
                  "failed": "Look at: {signal}"}, "else": "Stopped"},
              "labels": {"signal": {"disk": "Disk space", "*": "Health check"}},
              "visible": {"name": "A run"}, "container": "app",
              "data": {"v": 1, "kind": "report", "ok": true, "run_id": "{run}", "status": "{status}", "tool": "{tool}",
                  "i": "{$instance}"}}',
            sound => 'default', category => 'REPORT', interruption_level => 'time-sensitive')
        """#

    private static func payload(_ members: String) -> String {
        "'{\"run\": \"\(run)\"\(members.isEmpty ? "" : ", " + members)}'"
    }

    private static func prepared(_ outbox: Outbox, _ declaration: String) async throws {
        try await outbox.run("SELECT postbell.set_instance('default', 'house-1')")
        try await outbox.run(declaration)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A template shows the variant, the label and the text that its values ask for`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.prepared(outbox, Self.report)
            let bodies: [(payload: String, subtitle: String?, body: String)] = [
                (#""status": "done""#, nil, #"All \"well\""#),
                (
                    #""status": "done", "tool": "mail.send", "name": "Nightly\n  run""#, "Nightly run",
                    "mail.send is done"
                ),
                (#""status": "failed", "signal": "disk""#, nil, "Look at: Disk space"),
                (#""status": "failed", "signal": "unheard.of""#, nil, "Look at: Health check"),
                (#""status": "failed""#, nil, "Look at: Health check"),
                (#""status": "\u0066ailed", "signal": "\u0064isk""#, nil, "Look at: Disk space"),
                (#""st\u0061tus": "stopped", "name": "token: 12345678""#, "A run", "Stopped"),
            ]
            for expected in bodies {
                let wire = try await Wire.of(
                    "report", ["payload": Self.payload(expected.payload)], in: outbox)
                let subtitle = expected.subtitle.map { #""subtitle":"\#($0)","# } ?? ""
                #expect(
                    wire.apns.hasPrefix(
                        #"{"aps":{"alert":{"title":"Run {ended}",\#(subtitle)"body":"\#(expected.body)"},"#),
                    "\(wire.apns)")
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A template goes out loud and silent, with the dictionary that it declares`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.prepared(outbox, Self.report)
            let payload = Self.payload(#""status": "failed", "signal": "disk", "name": "Nightly""#)
            let loud = try await Wire.of(
                "report", ["payload": payload, "thread": "'session:1'", "badge": "3", "collapse_key": "'run-1'"],
                in: outbox)
            let alert = #""alert":{"title":"Run {ended}","subtitle":"Nightly","body":"Look at: Disk space"}"#
            let data = #"{"i":"house-1","v":1,"ok":true,"kind":"report","run_id":"\#(Self.run)","status":"failed"}"#
            #expect(
                loud.apns == #"{"aps":{\#(alert),"badge":3,"sound":"default","thread-id":"session:1","#
                    + #""category":"REPORT","interruption-level":"time-sensitive"},"app":\#(data)}"#)
            #expect(loud.apnsPriority == "10")
            let texts = #""title":"Run {ended}","subtitle":"Nightly","body":"Look at: Disk space""#
            let strings =
                #""i":"house-1","v":"1","ok":"true","kind":"report","run_id":"\#(Self.run)","status":"failed""#
            #expect(
                Self.data(loud.fcm) == #"{"notification_id":"ID",\#(texts),"badge":"3","sound":"default","#
                    + #""thread":"session:1","category":"REPORT","tag":"run-1",\#(strings)}"#)
            #expect(loud.fcm.contains(#""android":{"priority":"HIGH","#))

            let silent = try await Wire.of(
                "report", ["payload": payload, "silent": "true", "collapse_key": "'run-1'"], in: outbox)
            #expect(
                silent.apns == #"{"aps":{\#(alert),"category":"REPORT","interruption-level":"passive"},"app":\#(data)}"#
            )
            #expect(silent.apnsPriority == "5")
            #expect(
                Self.data(silent.fcm)
                    == #"{"notification_id":"ID",\#(texts),"category":"REPORT","silent":"1","tag":"run-1",\#(strings)}"#
            )
            #expect(silent.fcm.contains(#""android":{"priority":"NORMAL","#))
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A localized kind sends keys and their arguments, and an exact message where it is declared`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.prepared(
                outbox,
                #"""
                SELECT postbell.define_kind('message', 'localized', '{"message": "uuid!", "count": "int!"}',
                    '{"title": "PUSH_TITLE", "subtitle": "PUSH_SUB", "body": "PUSH_BODY(count,message)",
                      "container": "b",
                      "data": {"v": 1, "nid": "{$id}", "k": "message", "i": "{$instance}", "t": "{$thread}",
                               "m": "{message}"}}',
                    mutable_content => true, sound => 'default', category => 'MESSAGE', interruption_level => 'active',
                    collapse => 'none');
                SELECT postbell.define_kind('exact', 'localized', '{"message": "uuid?"}',
                    '{"title": "PUSH_TITLE", "container": "b", "data": {},
                      "fcm": {"v": 1, "nid": "{$id}", "t": "{$thread}", "m": "{message}", "badge": "{$badge}",
                              "quiet": "{$silent}", "title": "{$title}"}}', collapse => 'none')
                """#)
            let values: KeyValuePairs = [
                "payload": "'{\"message\": \"\(Self.run)\", \"count\": 4}'", "thread": "'t-1'", "badge": "0",
            ]
            let message = try await Wire.of("message", values, in: outbox)
            #expect(
                message.apns == #"{"aps":{"alert":{"title-loc-key":"PUSH_TITLE","subtitle-loc-key":"PUSH_SUB","#
                    + #""loc-key":"PUSH_BODY","loc-args":["4","\#(Self.run)"]},"badge":0,"sound":"default","#
                    + #""thread-id":"t-1","category":"MESSAGE","interruption-level":"active","mutable-content":1},"#
                    + #""b":{"i":"house-1","k":"message","m":"\#(Self.run)","t":"t-1","v":1,"nid":"ID"}}"#)
            #expect(
                Self.data(message.fcm) == #"{"notification_id":"ID","title_loc_key":"PUSH_TITLE","#
                    + #""subtitle_loc_key":"PUSH_SUB","body_loc_key":"PUSH_BODY","#
                    + #""body_loc_args":"[\"4\",\"\#(Self.run)\"]","badge":"0","sound":"default","thread":"t-1","#
                    + #""category":"MESSAGE","i":"house-1","k":"message","m":"\#(Self.run)","t":"t-1","v":"1","#
                    + #""nid":"ID"}"#
            )

            let exact = try await Wire.of("exact", ["badge": "2", "silent": "true"], in: outbox)
            #expect(
                exact.apns == #"{"aps":{"alert":{"title-loc-key":"PUSH_TITLE"},"badge":2,"#
                    + #""interruption-level":"passive"}}"#)
            #expect(
                Self.data(exact.fcm)
                    == #"{"v":"1","nid":"ID","badge":"2","quiet":"1","title":"PUSH_TITLE"}"#)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A code goes out with the generic alert, known or not, and with the mapping's version`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            let role = "test_plugin_\(outbox.database.name)"
            try await Self.prepared(
                outbox,
                #"""
                SELECT postbell.define_kind('plugin', 'code',
                    '{"code": "code(officerdev)!", "n": "int?", "id": "int?"}',
                    '{"title": "Officer", "container": "officer",
                      "data": {"c": "{code}", "n": "{n}", "id": "{id}", "mv": "{$mapping}"}}',
                    mutable_content => true, sound => 'default', collapse => 'none');
                """#)
            var versions: Set<String> = []
            for installed in [false, true] {
                if installed {
                    try await outbox.run(
                        #"""
                        CREATE ROLE \#(role); GRANT postbell_producer TO \#(role);
                        SELECT postbell.assign_namespace('\#(role)', 'officerdev/music'); SET ROLE \#(role);
                        SELECT postbell.install_codes('{"12.3": {"title": "{n} tracks"}}'); RESET ROLE
                        """#)
                }
                let version = try await outbox.value("SELECT postbell.mapping() ->> 'version'")
                versions.insert(version)
                let wire = try await Wire.of(
                    "plugin",
                    ["payload": #"'{"code": "officerdev/music:12.3", "n": 3}'"#, "thread": "'officerdev/music'"],
                    in: outbox)
                #expect(
                    wire.apns == #"{"aps":{"alert":{"title":"Officer"},"sound":"default","#
                        + #""thread-id":"officerdev/music","mutable-content":1},"#
                        + #""officer":{"c":"officerdev/music:12.3","n":3,"mv":"\#(version)"}}"#)
                #expect(
                    Self.data(wire.fcm) == #"{"notification_id":"ID","title":"Officer","sound":"default","#
                        + #""thread":"officerdev/music","c":"officerdev/music:12.3","n":"3","mv":"\#(version)"}"#)
            }
            #expect(versions.count == 2)
            try await outbox.run(
                "SELECT postbell.assign_namespace('\(role)', NULL); DROP OWNED BY \(role); DROP ROLE \(role)")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A badge alone, and a background push of each presentation`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.prepared(
                outbox,
                #"""
                SELECT postbell.define_kind('badge.t', 'template', '{}', '{"form": "badge"}', priority => 5::smallint);
                SELECT postbell.define_kind('badge.l', 'localized', '{"cleared": "slug?"}',
                    '{"form": "badge", "fcm": {"k": "sync", "badge": "{$badge}", "cleared": "{cleared}"}}',
                    priority => 5::smallint);
                SELECT postbell.define_kind('back.t', 'template', '{"n": "int!"}', '{"container": "b"}',
                    push_type => 'background', priority => 5::smallint, collapse => 'none');
                SELECT postbell.define_kind('back.l', 'localized', '{"n": "int!"}', '{"data": {"k": 1, "n": "{n}"}}',
                    push_type => 'background', priority => 5::smallint, collapse => 'none');
                SELECT postbell.define_kind('back.c', 'code', '{"c": "code!"}',
                    '{"data": {"c": "{c}", "v": "{$mapping}"}}',
                    push_type => 'background', priority => 5::smallint, collapse => 'none');
                """#)
            let version = try await outbox.value("SELECT postbell.mapping_version()")
            let rows: [(kind: String, values: KeyValuePairs<String, String>, apns: String, fcm: String)] = [
                ("badge.t", ["badge": "7"], #"{"aps":{"badge":7}}"#, #"{"notification_id":"ID","badge":"7"}"#),
                (
                    "badge.l", ["badge": "0", "payload": #"'{"cleared": "t-1"}'"#, "silent": "true"],
                    #"{"aps":{"badge":0}}"#, #"{"k":"sync","badge":"0","cleared":"t-1"}"#
                ),
                (
                    "back.t", ["payload": #"'{"n": 1}'"#, "badge": "7"],
                    #"{"aps":{"content-available":1},"b":{"n":1}}"#, #"{"notification_id":"ID","n":"1"}"#
                ),
                (
                    "back.l", ["payload": #"'{"n": 1}'"#], #"{"aps":{"content-available":1},"k":1,"n":1}"#,
                    #"{"notification_id":"ID","k":"1","n":"1"}"#
                ),
                (
                    "back.c", ["payload": #"'{"c": "a/b:c"}'"#],
                    #"{"aps":{"content-available":1},"c":"a/b:c","v":"\#(version)"}"#,
                    #"{"notification_id":"ID","c":"a/b:c","v":"\#(version)"}"#
                ),
            ]
            for row in rows {
                let wire = try await Wire.of(row.kind, row.values, in: outbox)
                #expect(wire.apns == row.apns, "\(row.kind)")
                #expect(Self.data(wire.fcm) == row.fcm, "\(row.kind)")
                #expect(wire.apnsPriority == "5" && wire.fcm.contains(#""priority":"NORMAL""#), "\(row.kind)")
            }
        }
    }

    /// A revision is what a row renders by for ever; a text that would be too large ends in the ledger by its name.
    @Test(arguments: DatabaseServer.allCases)
    func `Rows of an earlier revision render by it, and what is too large is refused by the true count`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            func define(_ title: String, _ container: String) async throws {
                try await outbox.run(
                    """
                    SELECT postbell.define_kind('note2', 'template', '{"word": "text(1000)?"}',
                        '{"title": "\(title)", "visible": {"word": "-"}, "container": "\(container)"}',
                        collapse => 'none')
                    """)
            }
            try await define("Before", "a")
            let earlier = try await Wire.of(
                "note2", ["payload": #"'{"word": "x"}'"#], in: outbox,
                beforeClaim: { try await define("After {word}", "b") })
            #expect(earlier.apns == #"{"aps":{"alert":{"title":"Before"}}}"#)
            let later = try await Wire.of("note2", ["payload": #"'{"word": "x"}'"#], in: outbox)
            #expect(later.apns == #"{"aps":{"alert":{"title":"After x"}}}"#)
            // 1000 emoji are 4000 bytes; with the rest of the body one of the two forms has too many.
            let large = try await Wire.of(
                "note2", ["payload": "json_build_object('word', repeat('🎉', 999))::text"], in: outbox)
            #expect(large.apns.utf8.count == 30 + 6 + 3996 && large.fcm.contains("🎉"))
            try await define(String(repeating: "x", count: 80) + "{word}", "b")
            let larger = try await Wire.of(
                "note2", ["payload": "json_build_object('word', repeat('🎉', 1000))::text"], in: outbox)
            #expect(larger.apns == "payload_too_large" && larger.fcm == "payload_too_large")
        }
    }

    /// The `data` of a message for FCM.
    private static func data(_ body: String) -> String {
        guard let start = body.firstRange(of: #""data":"#), let end = body.firstRange(of: #","android":"#) else {
            return body
        }
        return String(body[start.upperBound..<end.lowerBound])
    }
}
