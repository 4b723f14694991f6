import Postgres
import Support
import Testing

/// Texts that people wrote: what is stored of them, and what is refused.
@Suite(.timeLimit(.minutes(5)))
struct VisibleTextTests {
    private static let declaration = #"""
        SELECT postbell.define_kind('task', 'template', '{"id": "int?", "name": "text(12)?", "note": "text(12)?"}',
            '{"title": "{name}{note}", "visible": {"name": "A task", "note": null}}')
        """#

    /// What a text becomes, written as the inside of a JSON string.
    private static let stored: [(written: String, kept: String)] = [
        ("Weekly", "Weekly"), ("Grüße 🛎", "Grüße 🛎"), ("❤️ 日本語", "❤️ 日本語"), (#"a\"b\\c"#, #"a\"b\\c"#),
        (#"  two \t lines\r\n "#, "two lines"), (#"a\u00a0\u2003b\u3000"#, "a b"), (#"a\u2028b"#, "a b"),
        (#"a\u0001\u001b\u007f\u0085b"#, "a b"), (#"z\u200be\u200cr\u200do\ufeff"#, "zero"),
        (#"\u202eevil\u202c"#, "evil"), (#"\u2066a\u2069\u061cb\u200f"#, "ab"), (#"so\u00adft"#, "soft"),
        (#"t\udb40\udc41ag"#, "tag"), (#"f\u3164i\u2800ll"#, "fill"), (#"v\udb40\udd00s"#, "vs"),
        ("twelve chars", "twelve chars"), ("thirteen char", "thirteen ch…"), ("eleven  chars here", "eleven char…"),
        ("🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉", "🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉…"), ("elevenchar  x more", "elevenchar…"),
        ("", "A task"), (#" \u200b \n"#, "A task"), ("password: hunter2", "A task"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `A text is stored as one bounded line without what cannot be seen`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.declaration)
            for (index, text) in Self.stored.enumerated() {
                let id = try await outbox.value(
                    #"SELECT postbell.enqueue('task', 'anna', 'k\#(index)', '{ "id": 1, "name" : "\#(text.written)"}')"#
                )
                let payload = try await outbox.value("SELECT payload FROM postbell.outbox WHERE id = '\(id)'")
                #expect(payload == #"{"id":1,"name":"\#(text.kept)"}"#, "\(text.written)")
            }
        }
    }

    /// Made up, of the right forms.
    private static let credentials = [
        "-----BEGIN PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "AKIAABCDEFGHIJKLMNOP",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "glpat-abcdefghijklmnopqrst", "xoxb-1234567890-abcdef",
        "sk-abcdefghijklmnopqrstuvwx", "sk_live_abcdefghijklmnop", "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "123456789:AAabcdefghijklmnopqrstuvwxyz0123456", "https://user:secret@host/path", "postgres://u:p4ss@db/x",
        "Authorization: Bearer abcdefghijklmnop", "bearer abcdefghijklmnop", "PASSWORD = letmein", "api_key: abcd1234",
        #"{\"token\": \"abcdefgh\"}"#, "0123456789abcdef0123456789ABCDEF", "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12",
        // cut off, hidden and dressed up
        #"A title of many words, and then behind them: password: hunter2"#, #"s\u200bk-abcdefghijkl\u00admnopqrstuvwx"#,
        "pass\\u2060word: hunter2", "ｓｋ-ａｂｃｄｅｆｇｈｉｊｋｌｍｎｏｐｑｒｓｔ", #"sk-abcdefgh\u200bijklmnopqrstuvwx"#,
        #"password:\n\nhunter2"#,
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `What looks like a credential is replaced, or refused without its value`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.declaration)
            for (index, text) in Self.credentials.enumerated() {
                let id = try await outbox.value(
                    #"SELECT postbell.enqueue('task', 'anna', 'k\#(index)', '{"name": "\#(text)"}')"#)
                let payload = try await outbox.value("SELECT payload FROM postbell.outbox WHERE id = '\(id)'")
                #expect(payload == #"{"name":"A task"}"#, "\(text)")
                let error = await #expect(throws: PostgresError.self) {
                    try await outbox.run(#"SELECT postbell.enqueue('task', 'anna', 'n', '{"note": "\#(text)"}')"#)
                }
                #expect(error?.sqlState?.code == "PB010", "\(text)")
                #expect(
                    error?.message
                        == #"notification.visible_text: kind "task", key "note" is empty or looks like a credential"#)
            }
        }
    }

    @Test func `Words that people use are no credentials`() async throws {
        let titles = [
            "Weekly report", "Deploy release 12.3 to production", "Token ring, a talk", "Secret Santa",
            "password reset",
            "task-force-meeting-notes-and-plans", "Basic training begins", "Meeting at 10:30: budget",
            "C:\\\\dir\\\\file",
            "https://example.com/a/very/long/path/that/goes/on/and/on", "user@example.com", "Ship it!",
            "0196f6a1-0000-7000-8000-000000000000", "Donaudampfschifffahrtsgesellschaftskapitän",
        ]
        try await Outbox.on(.postgres15) { outbox in
            try await outbox.run(
                #"""
                SELECT postbell.define_kind('task', 'template', '{"name": "text(200)!"}',
                    '{"title": "{name}", "visible": {"name": "replaced"}}')
                """#)
            for (index, title) in titles.enumerated() {
                let id = try await outbox.value(
                    #"SELECT postbell.enqueue('task', 'anna', 'k\#(index)', '{"name": "\#(title)"}')"#)
                let payload = try await outbox.value("SELECT payload FROM postbell.outbox WHERE id = '\(id)'")
                #expect(payload == #"{"name":"\#(title)"}"#)
            }
        }
    }

    /// Swift's own table of Unicode says what is a format control or is not shown by itself.
    @Test(arguments: DatabaseServer.allCases)
    func `Every invisible code point is removed, and no other`(server: DatabaseServer) async throws {
        var invisible: [UInt32] = []
        var others: [UInt32] = []
        for number in UInt32(1)...0x10FFFF {
            guard let scalar = Unicode.Scalar(number) else { continue }
            let properties = scalar.properties
            let isEmojiForm = number == 0xFE0E || number == 0xFE0F
            if properties.generalCategory == .format || properties.isDefaultIgnorableCodePoint, !isEmojiForm {
                invisible.append(number)
            } else if properties.generalCategory == .control || properties.isWhitespace || number == 0x2800 {
                continue
            } else {
                others.append(number)
            }
        }
        #expect(invisible.count > 4000)
        try await Outbox.on(server) { outbox in
            func kept(_ numbers: [UInt32]) async throws -> String {
                let list = numbers.map(String.init).joined(separator: ",")
                return try await outbox.value(
                    """
                    SELECT count(*) FILTER (WHERE postbell.visible_text(chr(n)) <> '')
                    FROM unnest('{\(list)}'::int[]) n
                    """)
            }
            let keptInvisible = try await kept(invisible)
            #expect(keptInvisible == "0")
            // A sample of those that stay, and every one near those that go.
            let gone = Set(invisible)
            let neighbours = others.filter { gone.contains($0 &- 1) || gone.contains($0 + 1) }
            let sample = neighbours + others.enumerated().filter { $0.offset % 97 == 0 }.map(\.element)
            let keptOthers = try await kept(sample)
            #expect(keptOthers == "\(sample.count)")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What else is wrong with a payload with texts is found as in any other`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.declaration)
            let rows: [(state: String, payload: String)] = [
                ("PB002", #"{"name": "a", "name": "b"}"#), ("PB002", #"{"name": "a", "other": 1}"#),
                ("PB003", #"{"name": 7}"#), ("PB003", #"{"name": null}"#), ("PB003", #"{"name": "a", "id": "x"}"#),
                ("PB007", #"{"name": "a""#), ("PB007", #"["name"]"#), ("PB007", #"{"name": "\ud800"}"#),
                ("PB007", #"{"name": "\u0000"}"#), ("PB004", #"{"name": "\#(String(repeating: "a", count: 9000))"}"#),
            ]
            for row in rows {
                let error = await #expect(throws: PostgresError.self) {
                    try await outbox.run("SELECT postbell.enqueue('task', 'anna', 'k', '\(row.payload)')")
                }
                #expect(error?.sqlState?.code == row.state, "\(row.payload.prefix(40))")
            }
            // The payload of a kind without texts is stored as it was written.
            let id = try await outbox.value(#"SELECT postbell.enqueue('note', 'anna', 'n', ' { "word" : "tea" } ')"#)
            #expect(
                try await outbox.value("SELECT payload FROM postbell.outbox WHERE id = '\(id)'")
                    == #" { "word" : "tea" } "#)
        }
    }

    /// An operator's requeue takes the safe text through the same mill: it stays what it is.
    @Test func `A text that was made safe stays as it is when it is enqueued anew`() async throws {
        try await Outbox.on(.postgres15) { outbox in
            let changed = try await outbox.texts(
                """
                SELECT safe FROM (
                    SELECT postbell.safe_text(v, n, 'none') AS safe, n
                    FROM unnest(ARRAY['a  b', 'long enough to be cut', E'x\\u200b y', 'ab cd ef']) v,
                        generate_series(1, 12) n
                ) s
                WHERE postbell.safe_text(safe, n, 'none') <> safe
                """)
            #expect(changed == [])
        }
    }
}
