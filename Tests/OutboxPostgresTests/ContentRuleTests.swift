import Postgres
import Support
import Testing

/// What `define_kind` takes for the content of each presentation, and what it says of the rest.
@Suite(.timeLimit(.minutes(5)))
struct ContentRuleTests {
    private static let keys =
        #"{"id": "uuid!", "n": "int?", "word": "slug?", "size": "enum(s,m)!", "hue": "enum(red)?", "on": "bool!"}"#

    /// Presentation, content, and the fault; nil for what is taken. Payload keys are `keys` unless said otherwise.
    private static let rows: [(presentation: String, content: String, fault: String?)] = [
        ("template", #"{"title": "a {id} {{b}} {size}", "subtitle": "", "body": "{word}"}"#, nil),
        ("template", #"["title"]"#, "content is an object"),
        ("template", #"{"title": "x", "colour": "red"}"#, #"content of this presentation has no member "colour""#),
        ("template", #"{"title": 7}"#, "title has the wrong type"),
        ("template", #"{"title": null}"#, "title has the wrong type"),
        ("template", #"{"title": "a {id"}"#, "title has a brace left open"),
        ("template", #"{"title": "a }"}"#, "title has a brace left open"),
        ("template", #"{"title": "a {}"}"#, "title has a brace left open"),
        ("template", #"{"title": "{nope}"}"#, #"title uses the undeclared key "nope""#),
        // variants
        ("template", #"{"title": {"by": "size", "cases": {"s": "small", "m": "{word}"}}}"#, nil),
        ("template", #"{"title": {"by": "size", "cases": {"s": "small"}, "else": "other"}}"#, nil),
        ("template", #"{"title": {"by": "hue", "cases": {"red": "r"}, "absent": "none"}}"#, nil),
        ("template", #"{"title": {"by": "on", "cases": {"true": "on", "false": "off"}}}"#, nil),
        (
            "template",
            #"{"title": {"by": "word", "absent": "none", "else": {"by": "n", "absent": "a", "else": "b"}}}"#, nil
        ),
        ("template", #"{"title": {"by": "word", "else": "x"}}"#, nil),
        ("template", #"{"title": {"by": "nope", "else": "x"}}"#, "title.by names no declared key"),
        ("template", #"{"title": {"else": "x"}}"#, "title.by names no declared key"),
        ("template", #"{"title": {"by": 7, "else": "x"}}"#, "title.by names no declared key"),
        (
            "template", #"{"title": {"by": "size", "when": "x"}}"#,
            #"title has by, cases, absent and else, but not "when""#
        ),
        ("template", #"{"title": {"by": "size", "cases": []}}"#, "title.cases has the wrong type"),
        (
            "template", #"{"title": {"by": "size", "cases": {"xl": "x"}, "else": "y"}}"#,
            #"title.cases has "xl", which is no word of its key"#
        ),
        (
            "template", #"{"title": {"by": "word", "cases": {"a": "x"}, "else": "y"}}"#,
            #"title.cases has "a", which is no word of its key"#
        ),
        (
            "template", #"{"body": {"by": "size", "cases": {"s": {"by": "hue", "else": "{nope}"}}, "else": ""}}"#,
            #"body.cases.s.else uses the undeclared key "nope""#
        ),
        (
            "template", #"{"title": {"by": "size", "cases": {"s": "small"}}}"#,
            "title leaves a value of its key without a text: it needs an else"
        ),
        (
            "template", #"{"title": {"by": "hue", "cases": {"red": "r"}}}"#,
            "title leaves a value of its key without a text: it needs an else"
        ),
        (
            "template", #"{"title": {"by": "word", "absent": "none"}}"#,
            "title leaves a value of its key without a text: it needs an else"
        ),
        (
            "template",
            #"{"title": {"by":"n","else":{"by":"n","else":{"by":"n","else":{"by":"n","else":"deep"}}}}}"#,
            "title.else.else.else has variants of variants of variants of variants"
        ),
        // labels
        (
            "template", #"{"title": "{word} {size}", "labels": {"word": {"a": "A", "*": "Z"}, "size": {"*": "Any"}}}"#,
            nil
        ),
        ("template", #"{"title": "x", "labels": []}"#, "labels has the wrong type"),
        ("template", #"{"title": "x", "labels": {"n": {"*": "x"}}}"#, "labels.n is no declared slug or enum"),
        ("template", #"{"title": "x", "labels": {"nope": {"*": "x"}}}"#, "labels.nope is no declared slug or enum"),
        ("template", #"{"title": "x", "labels": {"word": "x"}}"#, "labels.word has the wrong type"),
        (
            "template", #"{"title": "x", "labels": {"word": {"a": "x"}}}"#,
            #"labels.word lacks "*", the label of all other values"#
        ),
        (
            "template", #"{"title": "x", "labels": {"word": {"a": "", "*": "x"}}}"#,
            "labels.word has at most 500 labels of 1 to 100 characters"
        ),
        (
            "template", #"{"title": "x", "labels": {"word": {"A b": "x", "*": "x"}}}"#,
            #"labels.word has "A b", which is no value of its key"#
        ),
        (
            "template", #"{"title": "x", "labels": {"size": {"xl": "x", "*": "x"}}}"#,
            #"labels.size has "xl", which is no value of its key"#
        ),
        // the dictionary
        (
            "template", #"{"title": "x", "container": "app", "data": {"v": 1, "b": false, "k": "text", "i": "{id}"}}"#,
            nil
        ),
        (
            "template",
            #"{"title": "x", "data": {"a": "{$id}", "b": "{$thread}", "c": "{$instance}", "d": "{$badge}"}}"#,
            nil
        ),
        (
            "template",
            #"{"title": "x", "fcm": {"a": "{$silent}", "b": "{$title}", "c": "{$subtitle}", "d": "{$body}"}}"#, nil
        ),
        ("template", #"{"title": "x", "container": "aps"}"#, "container is a name"),
        ("template", #"{"title": "x", "container": ""}"#, "container is a name"),
        ("template", #"{"title": "x", "container": 7}"#, "container is a name"),
        ("template", #"{"title": "x", "data": "x"}"#, "data has the wrong type"),
        ("template", #"{"title": "x", "data": {"aps": 1}}"#, "data.aps is no name that a member can have"),
        ("template", #"{"title": "x", "data": {"a b": 1}}"#, "data.a b is no name that a member can have"),
        ("template", #"{"title": "x", "data": {"from": 1}}"#, "data.from is reserved by FCM"),
        ("template", #"{"title": "x", "fcm": {"google.a": 1}}"#, "fcm.google.a is reserved by FCM"),
        ("template", #"{"title": "x", "data": {"a": null}}"#, "data.a is no number, boolean or text"),
        ("template", #"{"title": "x", "data": {"a": [1]}}"#, "data.a is no number, boolean or text"),
        ("template", #"{"title": "x", "data": {"a": 1.5}}"#, "data.a is no whole number"),
        ("template", #"{"title": "x", "data": {"a": "x {id}"}}"#, "data.a is neither a constant nor one value"),
        ("template", #"{"title": "x", "data": {"a": "{id}{n}"}}"#, "data.a is neither a constant nor one value"),
        ("template", #"{"title": "x", "data": {"a": "{nope}"}}"#, #"data.a uses the undeclared key "nope""#),
        ("template", #"{"title": "x", "data": {"a": "{$token}"}}"#, "data.a uses an unknown value of the notification"),
        // forms
        ("template", #"{"form": "badge", "fcm": {"badge": "{$badge}"}}"#, nil),
        ("template", #"{"form": "banner"}"#, #"form is "badge" or not there"#),
        ("template", #"{"form": "badge", "title": "x"}"#, #"form "badge" goes with fcm and with nothing else"#),
        ("template", #"{"form": "badge", "container": "x"}"#, #"form "badge" goes with fcm and with nothing else"#),
        // localized
        ("localized", #"{"title": "PUSH.TITLE", "body": "PUSH_BODY(id,size)"}"#, nil),
        ("localized", #"{"title": {"by": "size", "cases": {"s": "A", "m": "B(id)"}}}"#, nil),
        ("localized", #"{"title": "Hello you"}"#, "title is no key, nor KEY(argument,argument)"),
        ("localized", #"{"title": "A(id"}"#, "title is no key, nor KEY(argument,argument)"),
        ("localized", #"{"title": "A()"}"#, "title is no key, nor KEY(argument,argument)"),
        ("localized", #"{"title": "A{id}"}"#, "title is no key, nor KEY(argument,argument)"),
        ("localized", #"{"title": "A(nope)"}"#, #"title has the argument "nope", which is no required key"#),
        ("localized", #"{"title": "A(n)"}"#, #"title has the argument "n", which is no required key"#),
        ("localized", #"{"title": "A", "labels": {}}"#, #"content of this presentation has no member "labels""#),
        ("localized", #"{"title": "A", "visible": {}}"#, #"content of this presentation has no member "visible""#),
    ]

    private func fault(
        _ outbox: Outbox, _ presentation: String, _ content: String, payload: String = keys, more: String = ""
    ) async throws -> String? {
        do {
            try await outbox.run(
                "SELECT postbell.define_kind('odd', '\(presentation)', '\(payload)', '\(content)'\(more))")
            return nil
        } catch let error as PostgresError {
            #expect(error.sqlState?.code == "PB205", "\(content): \(error)")
            #expect(error.message.hasPrefix("kind.content: "), "\(error.message)")
            return String(error.message.dropFirst("kind.content: ".count))
        }
    }

    @Test func `Every form of content is taken or refused at its place`() async throws {
        try await Outbox.on(.postgres15) { outbox in
            for row in Self.rows {
                let said = try await fault(outbox, row.presentation, row.content)
                if let expected = row.fault {
                    #expect(said?.hasPrefix(expected) == true, "\(row.content): \(said ?? "taken")")
                } else {
                    #expect(said == nil, "\(row.content)")
                }
            }
        }
    }

    private static let codes: [(payload: String, content: String, more: String, fault: String?)] = [
        (
            #"{"c": "code!", "n": "int?"}"#, #"{"title": "A", "data": {"c": "{c}", "v": "{$mapping}"}}"#,
            ", mutable_content => true", nil
        ),
        (
            #"{"c": "code(a/b)!", "u": "uuid?", "b": "bool?"}"#, #"{"data": {"c": "{c}", "v": "{$mapping}"}}"#,
            ", push_type => 'background', priority => 5::smallint", nil
        ),
        (
            #"{"c": "code!"}"#, #"{"title": "A", "data": {"c": "{c}", "v": "{$mapping}"}}"#, "",
            "an alert of a kind of codes needs mutable"
        ),
        (
            #"{"c": "code?"}"#, #"{"title": "A", "data": {"v": "{$mapping}"}}"#, "",
            "a kind of codes has one required key"
        ),
        (
            #"{"c": "code!", "w": "slug?"}"#, #"{"title": "A", "data": {"c": "{c}", "v": "{$mapping}"}}"#, "",
            "a kind of codes has one"
        ),
        (
            #"{"c": "code!", "d": "code!"}"#, #"{"title": "A", "data": {"c": "{c}", "v": "{$mapping}"}}"#, "",
            "a kind of codes has one"
        ),
        (#"{"c": "code!"}"#, #"{"title": "A"}"#, "", "data of a kind of codes must hold the code"),
        (
            #"{"c": "code!"}"#, #"{"title": "A", "data": {"c": "{c}"}, "fcm": {"v": "{$mapping}"}}"#, "",
            "data of a kind of codes must hold"
        ),
        (
            #"{"c": "code!"}"#, #"{"title": "A", "data": {"v": "{$mapping}"}}"#, "",
            "data of a kind of codes must hold the code"
        ),
        (
            #"{"c": "code!", "n": "int?"}"#, #"{"title": "{n} new", "data": {"c": "{c}", "v": "{$mapping}"}}"#, "",
            "title stands for every code"
        ),
        (#"{"c": "code!"}"#, #"{"title": {"by": "c", "else": "x"}, "data": {}}"#, "", "title has the wrong type"),
        (#"{"c": "code!"}"#, #"{"form": "badge"}"#, ", priority => 5::smallint", "form does not go with codes"),
    ]

    @Test func `A kind of codes has a code, numbers and the mapping's version`() async throws {
        try await Outbox.on(.postgres15) { outbox in
            for row in Self.codes {
                let said = try await fault(outbox, "code", row.content, payload: row.payload, more: row.more)
                if let expected = row.fault {
                    #expect(said?.hasPrefix(expected) == true, "\(row.content): \(said ?? "taken")")
                } else {
                    #expect(said == nil, "\(row.content)")
                }
            }
        }
    }

    private static let texts: [(presentation: String, payload: String, content: String, fault: String?)] = [
        ("template", #"{"t": "text(10)?"}"#, #"{"title": "{t}", "visible": {"t": "A task"}}"#, nil),
        ("template", #"{"t": "text(10)?"}"#, #"{"title": "{t}", "visible": {"t": null}}"#, nil),
        (
            "template", #"{"t": "text(10)?"}"#, #"{"title": "{t}"}"#,
            #"the key "t" is text, which only a template shows"#
        ),
        ("localized", #"{"t": "text(10)?"}"#, #"{"title": "T"}"#, #"the key "t" is text, which only a template shows"#),
        ("template", #"{"t": "slug?"}"#, #"{"title": "{t}", "visible": {"t": "x"}}"#, "visible.t is no declared text"),
        (
            "template", #"{"t": "text(10)?"}"#, #"{"title": "x", "visible": {"t": "x", "u": "y"}}"#,
            "visible.u is no declared"
        ),
        (
            "template", #"{"t": "text(10)?"}"#, #"{"title": "x", "visible": {"t": 7}}"#,
            "visible.t must be null, or a text"
        ),
        (
            "template", #"{"t": "text(10)?"}"#, #"{"title": "x", "visible": {"t": ""}}"#,
            "visible.t must be null, or a text"
        ),
        ("template", #"{"t": "text(4)?"}"#, #"{"title": "x", "visible": {"t": "A task"}}"#, "visible.t must be null"),
        (
            "template", #"{"t": "text(90)?"}"#, #"{"title": "x", "visible": {"t": "two  spaces"}}"#,
            "visible.t must be null"
        ),
        (
            "template", #"{"t": "text(90)?"}"#, #"{"title": "x", "visible": {"t": "token: abcdef"}}"#,
            "visible.t must be null"
        ),
        ("template", #"{"t": "text(90)?"}"#, #"{"title": "x", "visible": []}"#, "visible has the wrong type"),
    ]

    @Test func `Text is shown only where the owner of the catalog names it`() async throws {
        try await Outbox.on(.postgres15) { outbox in
            for row in Self.texts {
                let said = try await fault(outbox, row.presentation, row.content, payload: row.payload)
                if let expected = row.fault {
                    #expect(said?.hasPrefix(expected) == true, "\(row.content): \(said ?? "taken")")
                } else {
                    #expect(said == nil, "\(row.content)")
                }
            }
        }
    }

    @Test func `A kind with open notifications is not dropped, and a dropped one may come back`() async throws {
        try await Outbox.on(.postgres15) { outbox in
            let declaration = #"SELECT postbell.define_kind('odd', 'template', '{}', '{"title": "x"}')"#
            try await outbox.run(declaration)
            try await outbox.device()
            let id = try await outbox.value("SELECT postbell.enqueue('odd', 'anna', 'a')")
            for statement in ["SELECT postbell.drop_kind('odd')", "DELETE FROM postbell.kinds WHERE name = 'odd'"] {
                #expect(await outbox.admin.refusal(statement) == "PB206", "waiting: \(statement)")
            }
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            #expect(await outbox.admin.refusal("SELECT postbell.drop_kind('odd')") == "PB206", "in flight")
            _ = try await worker.settle(batch.flush(1))
            #expect(try await outbox.value("SELECT postbell.drop_kind('odd')") == "t")
            #expect(try await outbox.value("SELECT postbell.drop_kind('odd')") == "f")
            #expect(await outbox.admin.refusal("SELECT postbell.enqueue('odd', 'anna', 'b')") == "PB001")
            try await outbox.run(declaration)
            #expect(try await outbox.value("SELECT revision FROM postbell.kinds WHERE name = 'odd' AND current") == "2")
            #expect(try await outbox.value("SELECT kind FROM postbell.notifications WHERE id = '\(id)'") == "odd")
        }
    }
}
