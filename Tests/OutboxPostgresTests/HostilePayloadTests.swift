import Postgres
import Support
import Testing

/// What producers should not send is refused with the right code, and nothing of it comes back.
@Suite(.timeLimit(.minutes(5)))
struct HostilePayloadTests {
    /// Tries an insert and answers SQLSTATE, message, detail, hint and context of its refusal, or `stored` and what
    /// was.
    private static let attempt = """
        CREATE FUNCTION public.attempt(kind text, payload text) RETURNS TABLE (state text, words text)
        LANGUAGE plpgsql AS $$
        DECLARE
            message text; detail text; hint text; context text;
        BEGIN
            INSERT INTO postbell.outbox AS o (principal_id, kind, dedupe_key, payload)
            VALUES ('anna', attempt.kind, gen_random_uuid()::text, attempt.payload)
            RETURNING o.payload INTO words;
            state := 'stored';
            RETURN NEXT;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
            words := concat_ws(E'\\n', message, detail, hint, context);
            RETURN NEXT;
        END
        $$
        """

    @Test(arguments: DatabaseServer.allCases)
    func `Hostile payloads are refused by code, and their words are not repeated`(
        server: DatabaseServer
    ) async throws {
        let cases = HostilePayloads.all
        #expect(cases.count >= 200)
        try await Outbox.on(server) { outbox in
            try await outbox.run(HostilePayloads.declaration)
            try await outbox.run(Self.attempt)
            let statement = PostgresStatement(
                "attempt", "SELECT state, coalesce(words, '') FROM public.attempt($1, $2)",
                parameterTypes: [.text, .text])
            func attempt(_ hostile: HostilePayloads.Case) async throws -> (state: String, words: String) {
                var parameters = PostgresParameters()
                parameters.append(hostile.kind)
                parameters.append(hostile.payload)
                let result = try await outbox.admin.query(statement, parameters)
                return (try result.text(0, 0), try result.text(0, 1))
            }
            for hostile in cases {
                let (state, words) = try await attempt(hostile)
                #expect(state == hostile.state, "\(hostile.name): \(words.prefix(200))")
                #expect(!words.contains(HostilePayloads.word), "\(hostile.name)")
                #expect(words.utf8.count < 1000, "\(hostile.name)")
            }
            #expect(try await outbox.value("SELECT count(*) FROM postbell.outbox") == "0")
            #expect(try await outbox.value("SELECT count(*) FROM postbell.queue") == "0")
            for long in HostilePayloads.cut {
                let (state, payload) = try await attempt(long)
                #expect(state == "stored", "\(long.name): \(payload.prefix(200))")
                #expect(payload.count < 100, "\(long.name)")
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Ordinary payloads take the short way past the check, and what is at fault never does`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(HostilePayloads.declaration)
            let statement = PostgresStatement(
                "fits",
                """
                SELECT postbell.payload_fits($1, payload_keys, payload_names, required_keys)::text
                FROM postbell.kinds WHERE name = 'all' AND current
                """,
                parameterTypes: [.text])
            func fits(_ payload: String) async throws -> String {
                var parameters = PostgresParameters()
                parameters.append(payload)
                return try await outbox.admin.query(statement, parameters).text(0, 0)
            }
            for payload in HostilePayloads.ordinary {
                #expect(try await fits(payload) == "true", "\(payload)")
            }
            // Visible texts are made safe before.
            for hostile in HostilePayloads.all where hostile.kind == "all" && hostile.state != "PB010" {
                #expect(try await fits(hostile.payload) == "false", "\(hostile.name)")
            }
        }
    }
}
