import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Hooks of the app: which functions may be one, what they may do, and what their answers are taken for.
@Suite(.timeLimit(.minutes(5)))
struct HookTests {
    private static let arguments =
        "ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[]"

    /// A schema of an app, whose role can do nothing else.
    private static func app(_ outbox: Outbox) async throws {
        try await outbox.run(
            """
            DO $$ BEGIN CREATE ROLE hook_app; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
            CREATE SCHEMA app AUTHORIZATION hook_app;
            GRANT USAGE ON SCHEMA app TO postbell_dispatcher;
            CREATE TABLE app.over (subject text);
            ALTER TABLE app.over OWNER TO hook_app;
            """)
    }

    /// Makes `app.hook` as the app would; `body` is a query or, with another language, a block.
    private static func function(
        _ outbox: Outbox, _ body: String, language: String = "sql",
        attributes: String =
            "SECURITY DEFINER SET search_path = pg_catalog, pg_temp", returns: String = "SETOF uuid",
        arguments: String = arguments
    ) async throws {
        try await outbox.run(
            """
            SET ROLE hook_app;
            CREATE OR REPLACE FUNCTION app.hook(\(arguments)) RETURNS \(returns)
            LANGUAGE \(language) \(attributes) AS $hook$ \(body) $hook$;
            REVOKE ALL ON FUNCTION app.hook(\(arguments)) FROM PUBLIC;
            GRANT EXECUTE ON FUNCTION app.hook(\(arguments)) TO postbell_dispatcher;
            RESET ROLE;
            """)
    }

    private static let set = "SELECT postbell.set_hook('note', 'stale', 'app.hook'::regproc)"
    private static let all = "SELECT unnest(ids)"

    // MARK: Which functions may be one

    @Test(arguments: DatabaseServer.allCases)
    func `A function that keeps the rules becomes a hook, again without effect, and null takes it away`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.app(outbox)
            try await Self.function(outbox, Self.all)
            try await outbox.run(Self.set)
            let made = try await outbox.value(
                "SELECT concat_ws(' ', kind, purpose, function_schema, function_name, "
                    + "timeout, set_at) FROM postbell.hooks")
            #expect(made.hasPrefix("note stale app hook 00:00:02"))
            try await outbox.run(Self.set)
            let again = try await outbox.value(
                "SELECT concat_ws(' ', kind, purpose, function_schema, function_name, "
                    + "timeout, set_at) FROM postbell.hooks")
            #expect(again == made)
            try await outbox.run("SELECT postbell.set_hook('note', 'stale', 'app.hook'::regproc, '50 ms')")
            #expect(try await outbox.value("SELECT timeout FROM postbell.hooks") == "00:00:00.05")
            #expect(try await outbox.texts("SELECT fault FROM postbell.hook_faults()") == [])
            try await outbox.run("SELECT postbell.set_hook('note', 'stale', NULL)")
            #expect(try await outbox.value("SELECT count(*) FROM postbell.hooks") == "0")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A function that breaks a rule is refused, and found when it breaks it later`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.app(outbox)
            try await Self.function(outbox, Self.all)
            try await outbox.run(Self.set)
            let signature = "FUNCTION app.hook(\(Self.arguments))"
            let breaks: [(fault: String, sql: String, mend: String)] = [
                ("SECURITY DEFINER", "ALTER \(signature) SECURITY INVOKER", "ALTER \(signature) SECURITY DEFINER"),
                (
                    "search_path", "ALTER \(signature) RESET search_path",
                    "ALTER \(signature) SET search_path = pg_catalog, pg_temp"
                ),
                (
                    "search_path", "ALTER \(signature) SET search_path = pg_catalog",
                    "ALTER \(signature) SET search_path = pg_catalog, pg_temp"
                ),
                (
                    "search_path", "ALTER \(signature) SET search_path = \"$user\", pg_temp",
                    "ALTER \(signature) SET search_path = app, pg_temp"
                ),
                (
                    "only postbell_dispatcher", "GRANT EXECUTE ON \(signature) TO PUBLIC",
                    "REVOKE EXECUTE ON \(signature) FROM PUBLIC"
                ),
                (
                    "only postbell_dispatcher", "GRANT EXECUTE ON \(signature) TO postbell_reader",
                    "REVOKE EXECUTE ON \(signature) FROM postbell_reader"
                ),
                (
                    "lacks EXECUTE", "REVOKE EXECUTE ON \(signature) FROM postbell_dispatcher",
                    "GRANT EXECUTE ON \(signature) TO postbell_dispatcher"
                ),
                (
                    "lacks USAGE", "REVOKE USAGE ON SCHEMA app FROM postbell_dispatcher",
                    "GRANT USAGE ON SCHEMA app TO postbell_dispatcher"
                ),
                (
                    "owner", "ALTER \(signature) OWNER TO postbell_owner", "ALTER \(signature) OWNER TO hook_app"
                ),
                ("owner", "ALTER \(signature) OWNER TO CURRENT_USER", "ALTER \(signature) OWNER TO hook_app"),
            ]
            for item in breaks {
                try await outbox.run(item.sql)
                #expect(await outbox.admin.refusal(Self.set) == "PB203", "\(item.sql)")
                let found = try await outbox.texts("SELECT fault FROM postbell.hook_faults()")
                #expect(found.count == 1 && found[0].contains(item.fault), "\(item.sql): \(found)")
                try await outbox.run(item.mend)
                #expect(await outbox.admin.refusal(Self.set) == nil, "\(item.mend)")
            }
            try await outbox.run("DROP \(signature)")
            #expect(
                try await outbox.texts("SELECT kind || ' ' || function || ' ' || fault FROM postbell.hook_faults()")
                    == ["note app.hook the function does not exist"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Other arguments, another result, an unknown kind or purpose, and odd timeouts are refused`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.app(outbox)
            for (returns, arguments) in [
                ("SETOF uuid", "ids uuid[]"), ("uuid", Self.arguments), ("SETOF text", Self.arguments),
                ("SETOF uuid", Self.arguments.replacing("jsonb[]", with: "text[]")),
            ] {
                let body = returns == "SETOF text" ? "SELECT 'a'::text" : "SELECT gen_random_uuid()"
                try await Self.function(outbox, body, returns: returns, arguments: arguments)
                #expect(await outbox.admin.refusal(Self.set) == "PB203", "\(returns) \(arguments)")
                try await outbox.run("DROP FUNCTION app.hook")
            }
            try await Self.function(outbox, Self.all)
            for call in [
                "'none', 'stale', 'app.hook'::regproc", "NULL, 'stale', 'app.hook'::regproc",
                "'note', 'both', 'app.hook'::regproc", "'note', NULL, 'app.hook'::regproc",
                "'note', 'stale', 'app.hook'::regproc, '0'", "'note', 'stale', 'app.hook'::regproc, '11 s'",
                "'note', 'stale', 'app.hook'::regproc, NULL",
            ] {
                #expect(await outbox.admin.refusal("SELECT postbell.set_hook(\(call))") == "PB203", "\(call)")
            }
            #expect(try await outbox.value("SELECT count(*) FROM postbell.hooks") == "0")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `None but the owner sets a hook, and none but a dispatcher asks one`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.app(outbox)
            try await Self.function(outbox, Self.all)
            try await outbox.run(Self.set)
            let roles = ["producer", "registrar", "reader", "operator", "dispatcher"]
            for role in roles {
                let session = try await outbox.database.connect(role: "postbell_\(role)")
                #expect(await session.refusal("SELECT postbell.set_hook('note', 'stale', NULL)") == "42501", "\(role)")
                #expect(await session.refusal("DELETE FROM postbell.hooks") == "42501", "\(role)")
                let asked = await session.refusal("SELECT postbell.ask_hook('note', 'stale', '{}')")
                #expect(asked == (role == "dispatcher" ? nil : "42501"), "\(role)")
                await session.close()
            }
        }
    }

    // MARK: Asking

    /// Two notifications of a kind with the hook `app.hook`, and a store in a dispatcher's role.
    static func asking(
        _ server: DatabaseServer, _ body: (Outbox, PostgresOutboxStore, [Identifier]) async throws -> Void
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await app(outbox)
            try await function(outbox, all)
            try await outbox.run("SELECT postbell.set_hook('note', 'stale', 'app.hook'::regproc, '10 s')")
            var ids = try await outbox.enqueue("a", more: "subject => 's', payload => '{\"word\": \"tea\"}'")
            ids += try await outbox.enqueue("b", more: "payload => '{\"word\": \"quince\"}'")
            let store = try PostgresOutboxStore(
                outbox.database.configuration(role: "postbell_dispatcher", worker: true), on: DatabaseServer.loop,
                owner: Worker.identifier(), name: "test")
            await store.start()
            let outcome: Result<Void, any Error>
            do {
                outcome = .success(try await body(outbox, store, try ids.map { try #require(Identifier($0)) }))
            } catch { outcome = .failure(error) }
            await store.stop()
            try outcome.get()
        }
    }

    private static let hook = KindHook(kind: "note", purpose: .stale, timeout: .seconds(10))

    /// The timeout is far beyond what any machine needs, where it is not what a test is about.
    static func answer(
        _ store: PostgresOutboxStore, _ ids: [Identifier], timeout: Duration = .seconds(10)
    ) async -> Result<[Identifier?], HookFault> {
        let hook = KindHook(kind: "note", purpose: .stale, timeout: timeout)
        do {
            return .success(try await store.ask([hook], about: ids).flatMap(\.identifiers))
        } catch {
            return .failure(error)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A hook is asked about rows at once, and sees what they are about`(server: DatabaseServer) async throws {
        try await Self.asking(server) { outbox, store, ids in
            #expect(try await store.hooks() == [Self.hook])
            #expect(Set(try await Self.answer(store, ids).get()) == Set(ids))
            let about = "SELECT n.id FROM unnest(ids, tenants, principals, subjects, payloads) n(id, t, p, s, l) "
            for (condition, expected) in [
                ("n.s = 's'", [ids[0]]), ("n.l ->> 'word' = 'quince'", [ids[1]]), ("n.t = 'default'", ids),
                ("n.p = 'anna'", ids), ("n.p = 'bert'", []), ("n.s IS NULL", [ids[1]]),
            ] {
                try await Self.function(outbox, about + "WHERE \(condition)")
                #expect(Set(try await Self.answer(store, ids).get()) == Set(expected), "\(condition)")
            }
            let access = KindHook(kind: "note", purpose: .access, timeout: .seconds(1))
            try await outbox.run("SELECT postbell.set_hook('note', 'access', 'app.hook'::regproc)")
            let both = try await store.ask([access, Self.hook], about: ids)
            #expect(both.map(\.purpose) == [.access, .stale] && both.map(\.identifiers) == [[ids[1]], [ids[1]]])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What a hook does wrong has a name, and says nothing in the app's words`(
        server: DatabaseServer
    ) async throws {
        try await Self.asking(server) { outbox, store, ids in
            let wrongs: [(body: String, language: String, fault: HookFault)] = [
                (
                    "BEGIN RAISE EXCEPTION 'secret %', payloads[1] USING ERRCODE = 'XX123'; END", "plpgsql",
                    HookFault(.stale, .raised, sqlState: "XX123")
                ),
                ("SELECT (1 / 0)::text::uuid", "sql", HookFault(.stale, .raised, sqlState: "22012")),
                (
                    "BEGIN PERFORM pg_sleep(60); END", "plpgsql",
                    HookFault(.stale, .timeout, sqlState: "57014")
                ),
                // Cannot look at what the dispatcher may, nor become it, nor change anything.
                (
                    "BEGIN RETURN QUERY SELECT batch FROM postbell.leases; END", "plpgsql",
                    HookFault(.stale, .notPermitted, sqlState: "42501")
                ),
                (
                    "BEGIN SET ROLE postbell_dispatcher; END", "plpgsql",
                    HookFault(.stale, .notPermitted, sqlState: "42501")
                ),
                (
                    "BEGIN INSERT INTO app.over VALUES ('x'); END", "plpgsql",
                    HookFault(.stale, .raised, sqlState: "25006")
                ),
            ]
            for wrong in wrongs {
                try await Self.function(outbox, wrong.body, language: wrong.language)
                let answer = await Self.answer(store, ids, timeout: .seconds(2))
                #expect(answer == .failure(wrong.fault), "\(wrong.body)")
            }
            try await Self.function(outbox, Self.all)
            #expect(Set(try await Self.answer(store, ids).get()) == Set(ids), "and the next one is asked as before")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `However much a hook answers, each id comes once and no more than one too many`(
        server: DatabaseServer
    ) async throws {
        try await Self.asking(server) { outbox, store, ids in
            try await Self.function(outbox, "SELECT i FROM unnest(ids || ids || ids) i")
            #expect(try await Self.answer(store, ids).get().count == 2)
            try await Self.function(outbox, "SELECT gen_random_uuid() FROM generate_series(1, 1000)")
            let many = try await Self.answer(store, ids).get()
            #expect(many.count == 3)
            #expect(throws: HookFault(.stale, .foreignAnswer)) {
                try HookVerdicts([HookReply(.stale, many)], asked: ids)
            }
            try await Self.function(outbox, "SELECT NULL::uuid")
            #expect(try await Self.answer(store, ids).get() == [nil])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A function that was changed against the rules is not called any more`(
        server: DatabaseServer
    ) async throws {
        try await Self.asking(server) { outbox, store, ids in
            // Replaced without its attributes it would run with the dispatcher's rights.
            try await outbox.run(
                """
                SET ROLE hook_app;
                CREATE OR REPLACE FUNCTION app.hook(\(Self.arguments)) RETURNS SETOF uuid
                LANGUAGE sql AS $$ SELECT unnest(ids) $$;
                RESET ROLE
                """)
            let unusable = HookFault(.stale, .unusable, sqlState: "PB203")
            #expect(await Self.answer(store, ids) == .failure(unusable))
            try await Self.function(outbox, Self.all)
            #expect(Set(try await Self.answer(store, ids).get()) == Set(ids))
            try await outbox.run(
                "REVOKE EXECUTE ON FUNCTION app.hook(\(Self.arguments)) FROM postbell_dispatcher")
            #expect(await Self.answer(store, ids) == .failure(unusable))
            try await outbox.run("DROP FUNCTION app.hook")
            #expect(await Self.answer(store, ids) == .failure(unusable))
            try await outbox.run("SELECT postbell.set_hook('note', 'stale', NULL)")
            #expect(await Self.answer(store, ids) == .failure(HookFault(.stale, .removed, sqlState: "PB204")))
        }
    }

    /// A hostile function may set what it likes and lock what it likes: the next one finds the session as it was.
    @Test(arguments: DatabaseServer.allCases)
    func `What a hook leaves behind in its session is gone before the next call`(
        server: DatabaseServer
    ) async throws {
        try await Self.asking(server) { outbox, store, ids in
            try await Self.function(
                outbox,
                """
                BEGIN
                    PERFORM pg_advisory_lock(1, 2), set_config('search_path', 'app', false),
                        set_config('statement_timeout', '0', false), set_config('postbell.tenant_id', 'evil', false);
                    RETURN QUERY SELECT unnest(ids);
                END
                """, language: "plpgsql")
            #expect(Set(try await Self.answer(store, ids).get()) == Set(ids))
            #expect(try await outbox.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "1")
            try await Self.function(
                outbox,
                """
                SELECT unnest(ids) WHERE current_setting('statement_timeout') = '10s'
                    AND coalesce(current_setting('postbell.tenant_id', true), '') = ''
                    AND current_user = 'hook_app' AND current_setting('transaction_read_only') = 'on'
                    AND current_setting('enable_seqscan') = 'on'
                """)
            #expect(Set(try await Self.answer(store, ids).get()) == Set(ids))
            #expect(try await outbox.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0")
        }
    }

    /// It heeds neither its timeout nor a request to cancel: the session is given up, and the server ends it.
    @Test(arguments: DatabaseServer.allCases)
    func `A hook that heeds no timeout costs its session, and the next call gets another`(
        server: DatabaseServer
    ) async throws {
        try await Self.asking(server) { outbox, store, ids in
            try await Self.function(
                outbox,
                """
                BEGIN
                    LOOP
                        BEGIN
                            PERFORM pg_sleep(60);
                        EXCEPTION WHEN query_canceled THEN
                            NULL;
                        END;
                    END LOOP;
                END
                """, language: "plpgsql")
            // Long enough that a busy server is in the loop by then; one cancelled before that says so itself.
            let answer = await Self.answer(store, ids, timeout: .seconds(2))
            #expect(answer == .failure(HookFault(.stale, .timeout)))
            try await Self.function(outbox, Self.all)
            #expect(Set(try await Self.answer(store, ids).get()) == Set(ids))
            try await Self.eventuallyEnds(outbox)
        }
    }

    private static func eventuallyEnds(_ outbox: Outbox) async throws {
        let asked =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE "
            + "'%postbell.ask_hook%' AND state = 'active' AND pid <> pg_backend_pid()"
        for _ in 0..<1500 {
            if try await outbox.value(asked) == "0" { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("a function that was given up goes on")
    }
}
