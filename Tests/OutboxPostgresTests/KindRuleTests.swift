import APNS
import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What `define_kind` and the worker say of push types is the same, in the same words.
@Suite(.timeLimit(.minutes(5)))
struct KindRuleTests {
    private static let types = APNSPushType.all.map(\.name) + ["shout", ""]
    private static let priorities = [10, 5, 1, 7]
    private static let long = String(repeating: "ü", count: 2100)
    private static let escaped = String(repeating: #"\n\t\""#, count: 682)
    /// Content, and what stands beside it, as SQL and as the worker has it after the catalog was read.
    private static let forms: [(presentation: String, content: String, beside: String)] = [
        ("raw", "{}", "NULL, NULL, NULL, false"), ("template", "{}", "NULL, NULL, NULL, false"),
        ("template", #"{"title":"x"}"#, "NULL, NULL, NULL, false"),
        ("template", #"{"subtitle":"x","body":"y {{a}}"}"#, "NULL, NULL, NULL, false"),
        ("template", #"{"container":"app"}"#, "'c', NULL, NULL, false"),
        ("template", #"{"container":"app"}"#, "NULL, 's', NULL, false"),
        ("template", #"{"container":"app"}"#, "NULL, NULL, 'passive', false"),
        ("template", #"{"container":"app"}"#, "NULL, NULL, NULL, true"),
        ("template", #"{"title":"\#(String(repeating: "ü{k}", count: 2000))"}"#, "'ccc', NULL, NULL, false"),
        ("template", #"{"title":"\#(String(repeating: "ü{k}", count: 2046))"}"#, "'ccc', 's', NULL, false"),
        ("template", #"{"body":"\#(String(repeating: "x", count: 4096))"}"#, "'c', NULL, NULL, false"),
        ("template", #"{"body":"\#(String(repeating: "x", count: 5120))"}"#, "'c', NULL, NULL, false"),
        ("template", #"{"form":"badge"}"#, "NULL, NULL, NULL, false"),
        ("template", #"{"form":"badge"}"#, "NULL, 's', NULL, false"),
        ("localized", #"{"form":"badge"}"#, "NULL, NULL, 'passive', true"),
        ("localized", #"{"title":"A(k,k)"}"#, "NULL, NULL, NULL, false"),
        ("localized", "{}", "NULL, NULL, NULL, false"),
        ("code", #"{"body":"x","data":{"c":"{k}","mv":"{$mapping}"}}"#, "NULL, NULL, NULL, true"),
        (
            "template",
            #"{"title":{"by":"k","cases":{"a":"\#(escaped)xxx","b":"\#(long)"},"else":"\#(long)"}}"#,
            "'ccc', NULL, NULL, false"
        ),
        ("template", #"{"body":"x","data":{"a":"\#(long)","b":1,"c":"{k}","d":"{$id}"}}"#, "NULL, NULL, NULL, false"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `Schema and worker judge every combination alike`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let worker = try await outbox.worker()
            for form in Self.forms {
                for type in Self.types {
                    for priority in Self.priorities {
                        let said = try await outbox.value(
                            """
                            SELECT coalesce(postbell.push_type_fault('\(type)', \(priority), '\(form.presentation)',
                                '\(form.content)', \(form.beside)), '')
                            """)
                        let kind = try await Self.loaded(worker, outbox, form, type, priority)
                        #expect(said == APNSPushType.fault(of: kind) ?? "", "\(type) \(priority) \(form)")
                    }
                }
            }
        }
    }

    /// A kind that came around `define_kind`, as a worker reads it.
    private static func loaded(
        _ worker: Worker, _ outbox: Outbox, _ form: (presentation: String, content: String, beside: String),
        _ type: String,
        _ priority: Int
    ) async throws -> Kind {
        try await outbox.run(
            """
            DELETE FROM postbell.kinds;
            INSERT INTO postbell.kinds (
                name, revision, presentation, payload, payload_keys, required_keys, content, urgency, priority,
                push_type, grace, wait_for_device, max_age, collapse, group_by_thread, ends_when_seen,
                category, sound, interruption_level, mutable_content)
            VALUES ('k', 1, '\(form.presentation)', '{}', '{}', '{}', '\(form.content)', 'urgent', \(priority),
                '\(type)', '0', '0', '1 h', 'none', true, false, \(form.beside))
            """)
        let result = try await worker.query(PostgresCommand(CatalogStatement.kinds, PostgresParameters()))
        return try #require(try CatalogAnswer.kinds(result).first)
    }

    private static let declared: [(arguments: String, fault: String?)] = [
        ("push_type => 'background', priority => 5::smallint", nil),
        ("push_type => 'background', priority => 5::smallint, urgency => 'bulk'", nil),
        ("push_type => 'background'", "push type background goes with priority 5"),
        ("push_type => 'background', urgency => 'bulk'", "push type background goes with priority 5"),
        (
            "push_type => 'background', priority => 5::smallint, sound => 'default'",
            "push type background shows nothing: without title, subtitle, body, sound, category, interruption level and"
                + " mutable content"
        ),
        ("push_type => 'voip'", nil), ("push_type => 'location'", nil),
        ("push_type => 'location', priority => 1::smallint", "push type location goes with priority 10 or 5"),
        (
            "push_type => 'liveactivity'",
            "push type liveactivity needs the presentation raw: no template can write its payload"
        ),
        ("push_type => 'alert'", "an alert needs a title or a body"),
        ("push_type => 'shout'", #"APNs has no push type "shout""#),
        ("priority => NULL", "push type alert goes with priority 10 or 5 or 1"),
    ]

    @Test(arguments: declared)
    func `A declaration is refused by a stable code`(arguments: String, fault: String?) async throws {
        try await Outbox.on(.postgres15) { outbox in
            let call = "SELECT postbell.define_kind('odd', 'template', \(arguments))"
            guard let fault else { return try await outbox.run(call) }
            let error = await #expect(throws: PostgresError.self) { try await outbox.run(call) }
            #expect(error?.sqlState?.code == "PB202")
            #expect(error?.message == "kind.push_type: \(fault)")
            #expect(try await outbox.value("SELECT count(*) FROM postbell.kinds WHERE name = 'odd'") == "0")
        }
    }
}
