import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The catalog of the agent platform lets no content through: what a run says, does and fails by stays in the database.
@Suite(.timeLimit(.minutes(5)))
struct CatalogContentTests {
    /// What a producer might be tempted to send along.
    private static let contents = [
        "arguments", "summary", "action_summary", "message", "text", "question", "answer", "failure", "error",
        "traceback", "instruction", "result", "transcript", "reasoning", "caller", "title", "body", "schedule_context",
    ]

    private static let secret = "sesame: the invoice of Mr. Miller"

    private static func with(_ body: (Outbox) async throws -> Void) async throws {
        try await Outbox.on(.postgres15) { outbox in
            try await outbox.run(try ShippedCatalog.agentPlatform.catalog())
            try await body(outbox)
        }
    }

    /// A sample's payload with one more member, or another value in one's place.
    private static func enqueue(_ sample: CatalogSample, _ key: String, in outbox: Outbox) -> String {
        """
        SELECT postbell.enqueue('\(sample.kind)', 'ada', gen_random_uuid()::text,
            (('\(sample.payload)'::jsonb || jsonb_build_object('\(key)', '\(secret)')))::text)
        """
    }

    @Test func `No kind has a key for content, and no key but the schedule's title takes a text`() async throws {
        try await Self.with { outbox in
            for sample in CatalogSample.all(of: .agentPlatform) {
                for key in Self.contents {
                    let refusal = await Self.refusal(Self.enqueue(sample, key, in: outbox), outbox)
                    #expect(refusal?.state == "PB002", "\(sample.kind) \(key)")
                    #expect(refusal?.message.contains("sesame") == false)
                }
                let declared = try await outbox.texts(
                    "SELECT jsonb_object_keys(payload) FROM postbell.kinds WHERE name = '\(sample.kind)' AND current")
                for key in declared where key != "schedule_title" {
                    let refusal = await Self.refusal(Self.enqueue(sample, key, in: outbox), outbox)
                    #expect(refusal?.state == "PB003", "\(sample.kind) \(key)")
                    #expect(refusal?.message.contains("sesame") == false)
                }
            }
            let texts = try await outbox.texts(
                """
                SELECT k.name || ' ' || p.key || ' ' || (p.value #>> '{}')
                FROM postbell.kinds k CROSS JOIN LATERAL jsonb_each(k.payload) p
                WHERE k.current AND p.value #>> '{}' LIKE 'text%' ORDER BY 1
                """)
            #expect(
                texts == [
                    "schedule_occurrence_skipped schedule_title text(160)?",
                    "schedule_run_finished schedule_title text(160)?",
                ])
        }
    }

    private static func refusal(_ sql: String, _ outbox: Outbox) async -> (state: String?, message: String)? {
        do {
            try await outbox.run(sql)
            return nil
        } catch let error as PostgresError {
            return (error.sqlState?.code, error.message)
        } catch {
            return (nil, "\(error)")
        }
    }

    /// The dictionary is what an app of the first version knows: ids, closed words and the fixed title.
    @Test func `The dictionary has the names of the first version and neither the schedule's title nor its time`()
        async throws
    {
        let known: Set<String> = Set(
            [
                "version", "kind", "title", "status", "tool_name", "session_id", "run_id", "approval_id", "question_id",
                "schedule_id", "occurrence_id", "invocation_id", "call_id", "notification_id", "signal", "severity",
                "reason_code", "release_id",
            ].map { "veetbot." + $0 } + ["veetbot"])
        let titles: Set<String> = [
            "Approval needed", "The agent has a question", "Action on this device", "Run failed",
            "Scheduled run finished", "Scheduled run skipped", "New call result", "Production alert",
            "Production recovered", "Test notification",
        ]
        try await Self.with { outbox in
            for sample in CatalogSample.all(of: .agentPlatform) {
                let wire = try await Wire.of(sample.kind, ["payload": "'\(sample.payload)'"], in: outbox)
                let keys = try JSONShape(wire.apns).keys.filter { !$0.hasPrefix("aps") }
                #expect(keys.isSubset(of: known), "\(sample.name): \(keys.subtracting(known))")
                for key in ["version", "kind", "title", "notification_id"] {
                    #expect(keys.contains("veetbot." + key), "\(sample.name): \(key)")
                }
                let dictionary = try #require(wire.apns.firstRange(of: #""veetbot":"#))
                let texts = try JSONShape(String(wire.apns[dictionary.upperBound...].dropLast())).texts
                #expect(!texts.contains { $0.contains("Weekly") || $0.contains("2026-11-30") }, "\(texts)")
                #expect(texts.contains { titles.contains($0) }, "\(texts)")
            }
        }
    }
}
