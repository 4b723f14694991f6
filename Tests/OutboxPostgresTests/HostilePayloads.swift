/// Payloads that a producer should not send: what each is, and with which SQLSTATE it has to be refused. All hold a
/// word that must not come back.
///
/// They are for a kind `all` with one key of each type (`id` required), and for a raw kind.
enum HostilePayloads {
    /// In every value and in every name that is not plain.
    static let word = "zq7-do-not-repeat"
    static let identifier = "0196f6a1-0000-7000-8000-000000000000"

    static let instant = "2026-01-01T00:00:00Z"

    /// What producers mostly send, in the ways that their languages write JSON.
    static let ordinary = [
        #"{"id": "\#(identifier)"}"#, #"{"id":"\#(identifier)","tool":"mail.send"}"#,
        #"{ "flag" : false, "count": -7,"# + "\n" + #""id": "\#(identifier)" }"#,
        with(#""reason": "app/mail:sent", "state": "open", "at": "\#(instant)""#), with(#""name": "Ärger: 鐘""#),
    ]

    static let declaration = #"""
        SELECT postbell.define_kind('all', 'template', payload => '{"id": "uuid!", "count": "int?", "tool": "slug?",
                "reason": "code?", "state": "enum(open,done)?", "at": "timestamp?", "flag": "bool?",
                "name": "text(20)?"}',
            content => '{"title": "All", "visible": {"name": null}}');
        SELECT postbell.define_kind('own', 'raw', producers => ARRAY[current_user]::name[])
        """#

    struct Case {
        let name: String
        let payload: String
        let state: String
        var kind = "all"
    }

    static var all: [Case] { types + values + names + missing + syntax + sizes + texts + raw }

    private static func with(_ member: String) -> String { #"{"id": "\#(identifier)", \#(member)}"# }

    // MARK: Values

    /// Each key with values of all other types.
    private static var types: [Case] {
        let values = [
            ("null", "null"), ("true", "true"), ("number", "7"), ("fraction", "1.5"), ("exponent", "1e3"),
            ("string", #""\#(word) and more""#), ("empty", #""""#), ("list", #"["\#(word)"]"#), ("empty list", "[]"),
            ("object", #"{"a": "\#(word)"}"#), ("empty object", "{}"),
        ]
        // What is right for a key, or refused as a text.
        let right = ["count": ["number"], "flag": ["true"], "name": ["string", "empty"]]
        return ["count", "tool", "reason", "state", "at", "flag", "name"].flatMap { key in
            values.filter { right[key]?.contains($0.0) != true }.map { value in
                Case(name: "\(key) is \(value.0)", payload: with(#""\#(key)": \#(value.1)"#), state: "PB003")
            }
        }
    }

    /// The right type, and yet not the value that it promises.
    private static var values: [Case] {
        let wrong: [(key: String, values: [String])] = [
            (
                "count",
                ["0.0", "1e0", "12345678901234567890", "-0.5", "1E400", "99999999999999999999999999999999999999"]
            ),
            (
                "tool",
                [
                    #""Upper""#, #""with space""#, #""a/b""#, #""ü""#, #""а""#, #""a\u200bb""#, #""a\nb""#, #""a;--""#,
                    #""\#(String(repeating: "a", count: 101))""#, #""a'b""#, #""a\"b""#, #""<b>""#, #""{tool}""#,
                    #""%s""#,
                ]
            ),
            (
                "reason",
                [
                    #""no-colon""#, #"":x""#, #""a:""#, #""a/b/c:d""#, #""A:b""#, #""a:b:c""#, #""a:b c""#,
                    #""a:b\u0007""#,
                    #""a/../b:c""#, #""a/:b""#, #""/a:b""#, #""\#(String(repeating: "a", count: 200)):b""#,
                ]
            ),
            ("state", [#""Open""#, #""open ""#, #""closed""#, #""open,done""#, #""\u006fpen\u0301""#, #""o""#]),
            (
                "at",
                [
                    #""2026-01-01""#, #""2026-01-01T00:00:00""#, #""2026-1-1T00:00:00Z""#, #""yesterday""#, #""now""#,
                    #""2026-01-01T00:00:00 UTC""#, #""2026-01-01T00:00:00.1234567890Z""#, #""+2026-01-01T00:00:00Z""#,
                    #""2026-01-01T00:00:00Z\n""#, #""２０２６-01-01T00:00:00Z""#,
                ]
            ),
            ("flag", [#""true""#, "0", "1", #""on""#]),
        ]
        let required = [
            #""0196f6a1""#, #""0196f6a1000070008000000000000000""#, #""{\#(identifier)}""#, #""\#(identifier) ""#,
            #""\#(identifier)\n""#, #""urn:uuid:\#(identifier)""#, #""g196f6a1-0000-7000-8000-000000000000""#,
            #""０196f6a1-0000-7000-8000-000000000000""#, #"["\#(identifier)"]"#, "7", "true", "null", "{}",
        ]
        return wrong.flatMap { key, values in
            values.map { Case(name: "\(key) is \($0)", payload: with(#""\#(key)": \#($0)"#), state: "PB003") }
        } + required.map { Case(name: "id is \($0)", payload: #"{"id": \#($0)}"#, state: "PB003") }
            + [2, 9, 10, 11, 60].map { depth in
                let nest = String(repeating: "[", count: depth) + #""\#(word)""# + String(repeating: "]", count: depth)
                return Case(name: "\(depth) levels deep", payload: with(#""tool": \#(nest)"#), state: "PB003")
            }
    }

    // MARK: Names

    /// Keys that the kind does not declare, also those that only look like one.
    private static var names: [Case] {
        let foreign = [
            "other", "ID", "Id", "id ", " id", "", "i d", #"id\u200b"#, #"id\u0000x"#, #"\u0456d"#, "ｉｄ", "aps",
            "alert",
            "apns-topic", "fcm", "data", "notification", "token", "to", "__proto__", "constructor", "prototype", "$ref",
            "@type", "id.x", "id[0]", "count;drop", #"quote\"s"#, #"back\\slash"#, #"line\nbreak"#, #"\u202egnp"#, "🛎",
            "id\\u0301", String(repeating: "long", count: 500),
        ]
        return foreign.map { name in
            // A key with U+0000 is none that jsonb can hold: the payload is no JSON object.
            let isSyntax = name.contains("u0000")
            return Case(
                name: "a key \(name.prefix(40))", payload: with(#""\#(name)": "\#(word)""#),
                state: isSyntax ? "PB007" : "PB002")
        }
            + [
                #"{"id": "\#(identifier)", "id": "\#(word)"}"#, #"{"id": "\#(word)", "id": "\#(identifier)"}"#,
                #"{"id": "\#(identifier)", "\u0069d": "\#(identifier)"}"#, with(#""tool": "a", "tool": "\#(word)""#),
                with(#""tool": "a", "too\u006c": "b""#), with(#""count": 1, "count": 1"#),
                with(#""other": 1, "other": 1"#), with(#""reason": "a:b", "reason": "a\u003ab""#),
                with(#""reason": "a:b", "tool": "\u003a", "reason": "a:b""#), with(#""at":1, "at":"\#(instant)""#),
            ].map { Case(name: "twice: \($0)", payload: $0, state: "PB002") }
    }

    private static var missing: [Case] {
        ["{}", #"{"tool": "a"}"#, #"{"count": 7, "flag": true}"#, #"{"name": "\#(word)"}"#].map {
            Case(name: "without what is required: \($0)", payload: $0, state: "PB002")
        }
    }

    // MARK: Text

    /// What is no JSON object, or not one that every reader reads alike.
    private static var syntax: [Case] {
        let id = #""id": "\#(identifier)""#
        let payloads = [
            "", " ", word, "null", "true", "7", #""\#(word)""#, "[]", "[{\(id)}]", "{", "}", "{\(id)", "{\(id)}}",
            "{\(id)},", "{\(id),}", "{,\(id)}", "{\(id) \(id)}", "{'id': '\(word)'}", "{id: \"\(word)\"}",
            "{\(id), \"count\": NaN}", "{\(id), \"count\": Infinity}", "{\(id), \"count\": -}",
            "{\(id), \"count\": 01}",
            "{\(id), \"count\": +1}", "{\(id), \"count\": 0x10}", "{\(id), \"count\": .5}", "{\(id), \"flag\": TRUE}",
            "{\(id), \"flag\": True}", "{\(id), \"tool\": undefined}", "{\(id)} // \(word)", "/* \(word) */ {\(id)}",
            "\u{FEFF}{\(id)}", "{\(id), \"tool\": \"\\ud800\"}", "{\(id), \"tool\": \"\\udc00\"}",
            "{\(id), \"tool\": \"\\udc00\\ud800\"}", "{\(id), \"tool\": \"\\ud83d\"}",
            "{\(id), \"name\": \"\\ud83d x\"}",
            "{\(id), \"tool\": \"\\u0000\"}", "{\(id), \"name\": \"a\\u0000\(word)\"}", "{\(id), \"tool\": \"\\x41\"}",
            "{\(id), \"tool\": \"\\u12\"}", "{\(id), \"tool\": \"a\nb\"}", "{\(id), \"tool\": \"a\tb\"}",
            "{\(id), \"tool\": \"\(word)}", "id=\(word)&tool=a", "<id>\(word)</id>", "id: \(word)\n", "{\(id)}\u{1}",
            "{\(id), \"tool\": " + String(repeating: "[", count: 8000),
        ]
        return payloads.map { Case(name: "syntax: \($0.prefix(60))", payload: $0, state: "PB007") }
    }

    /// Around what a provider takes and around what is stored, in characters of one, three and four bytes.
    private static var sizes: [Case] {
        [("ASCII", "a"), ("CJK", "鐘"), ("emoji", "🛎")].flatMap { name, character in
            [4095, 4096, 4097, 5121, 8192, 8193, 16384, 16385, 70_000].map { size in
                let payload = filled("tool", to: size, with: character)
                return Case(
                    name: "\(size) bytes of \(name)", payload: payload, state: size > 8192 ? "PB004" : "PB003")
            }
        }
    }

    /// The same in a visible text, which is cut to its bound.
    static var cut: [Case] {
        [("CJK", "鐘"), ("emoji", "🛎"), ("words", "aé ")].flatMap { name, character in
            [4095, 4096, 4097, 5121, 8192].map { size in
                Case(
                    name: "\(size) bytes of \(name)", payload: filled("name", to: size, with: character),
                    state: "stored")
            }
        }
    }

    /// A payload of exactly so many bytes, most of them in one value.
    private static func filled(_ key: String, to size: Int, with character: String) -> String {
        let frame = with(#""\#(key)": """#)
        let count = (size - frame.utf8.count) / character.utf8.count
        let rest = size - frame.utf8.count - count * character.utf8.count
        return with(#""\#(key)": "\#(String(repeating: character, count: count))""#)
            + String(repeating: " ", count: rest)
    }

    /// Visible texts that look like credentials, or of which nothing is left. VisibleTextTests has those that are made
    /// safe.
    private static var texts: [Case] {
        [
            "", " ", #"\u200b\u200d\ufeff"#, #"\u202e\u202c"#, #"\n\t"#, "password: \(word)", "token=\(word)",
            "sk-abcdefghijklmnopqrstuvwx", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "AKIAABCDEFGHIJKLMNOP",
            "https://user:\(word)@host/", "-----BEGIN PRIVATE KEY-----", "Bearer \(word)abcdef",
            #"pass\u200bword: \#(word)"#, "ｐａｓｓｗｏｒｄ: \(word)", "0123456789abcdef0123456789ABCDEF",
        ].map { Case(name: "a text \($0)", payload: with(#""name": "\#($0)""#), state: "PB010") }
    }

    // MARK: Raw

    private static var raw: [Case] {
        let word = #""\#(word)""#
        return [
            ("{}", "PB002"), (#"{"web": {}}"#, "PB002"), (#"{"APNS": {}}"#, "PB002"),
            (#"{"apns": {}, "x": \#(word)}"#, "PB002"),
            (#"{"apns": {}, "apns": {}}"#, "PB002"), (#"{"apns": \#(word)}"#, "PB003"),
            (#"{"apns": [\#(word)]}"#, "PB003"),
            (#"{"apns": null}"#, "PB003"), (#"{"fcm": 7}"#, "PB003"), ("[]", "PB007"), ("", "PB007"),
            (#"{"apns": {"aps": {"alert": "\ud800"}}}"#, "PB007"), (#"{"apns": {"aps": "\u0000"}}"#, "PB007"),
            (#"{"apns": {"aps": "\#(String(repeating: "a", count: 16_384))"}}"#, "PB004"),
            (#"{"apns": {"aps": "\#(String(repeating: "鐘", count: 5_462))"}}"#, "PB004"),
        ].map { Case(name: "raw: \($0.0.prefix(60))", payload: $0.0, state: $0.1, kind: "own") }
    }
}
