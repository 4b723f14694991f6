import FakeProviders
import Support
import Testing

/// Hooks of kinds, through a real worker: what they end, and that their trouble is their kind's alone.
@Suite(.serialized) struct HookTests {
    private static let arguments =
        "ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[]"

    /// Makes the function `app.KIND` as the app's role, again if it exists.
    private static func function(_ stage: Stage, _ name: String, _ body: String) async throws {
        try await stage.run(
            """
            SET ROLE hook_app;
            CREATE OR REPLACE FUNCTION app.\(name)(\(arguments)) RETURNS SETOF uuid
            LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $hook$ \(body) $hook$;
            REVOKE ALL ON FUNCTION app.\(name)(\(arguments)) FROM PUBLIC;
            GRANT EXECUTE ON FUNCTION app.\(name)(\(arguments)) TO postbell_dispatcher;
            RESET ROLE
            """)
    }

    private static func hook(
        _ stage: Stage, _ kind: String, _ body: String, purpose: String = "stale", timeout: String = "2 s"
    ) async throws {
        try await stage.run(
            """
            SELECT postbell.define_kind('\(kind)', 'template', payload => '{"word":"slug?"}',
                content => '{"title":"News"}')
            """)
        try await function(stage, kind, body)
        try await stage.run(
            "SELECT postbell.set_hook('\(kind)', '\(purpose)', 'app.\(kind)'::regproc, '\(timeout)')")
    }

    private static func on(_ body: (Stage) async throws -> Void) async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.run(
                """
                DO $$ BEGIN CREATE ROLE hook_app; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
                CREATE SCHEMA app AUTHORIZATION hook_app;
                GRANT USAGE ON SCHEMA app TO postbell_dispatcher
                """)
            try await stage.register("ada", token: "0a0b0c0d")
            try await body(stage)
        }
    }

    /// Enqueues one notification per kind in one transaction, so that one claim takes them; their keys are the kinds
    /// with `suffix`.
    private static func enqueue(
        _ stage: Stage, _ kinds: [String], suffix: String = "", expires: String = "NULL"
    ) async throws {
        let rows = kinds.map { kind in
            let payload =
                kind == "approval_requested"
                ? #"{"approval_id":"00000000-0000-0000-0000-000000000001"}"# : #"{"word":"quince"}"#
            return "('ada', '\(kind)', '\(kind)\(suffix)', 's-\(kind)', '\(payload)', \(expires))"
        }
        try await stage.run(
            """
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload, expires_at)
            VALUES \(rows.joined(separator: ", "))
            """)
    }

    private static func end(_ stage: Stage, _ key: String) async throws -> [String] {
        try await stage.texts(
            "SELECT status || ' ' || coalesce(reason, '') FROM postbell.notifications WHERE dedupe_key = '\(key)'")
    }

    @Test func `What is over or may not be seen falls out, and other rows of the same batch go out`() async throws {
        try await Self.on { stage in
            try await Self.hook(stage, "over", "BEGIN RETURN QUERY SELECT unnest(ids); END")
            try await Self.hook(stage, "hidden", "BEGIN RETURN; END", purpose: "access")
            try await Self.hook(stage, "seen", "BEGIN RETURN QUERY SELECT unnest(ids); END", purpose: "access")
            try await Self.hook(stage, "fresh", "BEGIN RETURN; END")
            try await Self.enqueue(stage, ["over", "approval_requested", "hidden", "seen", "fresh"])
            let worker = try stage.startWorker()
            for key in ["approval_requested", "seen", "fresh"] {
                try await stage.waitFor(key, "dispatched")
                #expect(try await stage.outcomes(key) == ["delivered"])
            }
            for (key, reason) in [("over", "superseded"), ("hidden", "no_access")] {
                try await stage.waitFor(key, "superseded")
                #expect(try await Self.end(stage, key) == ["superseded \(reason)"])
                #expect(try await stage.outcomes(key) == ["skipped"])
            }
            #expect(await stage.apns.requests.count == 3)
            #expect(try await worker.stop() == 0)
            #expect(!worker.errors.contains("quince") && !worker.errors.contains("hook of the kind"))
            #expect(try await stage.audit() == [])
        }
    }

    private static let failing: [(kind: String, body: String, cause: String)] = [
        ("raises", "BEGIN RAISE EXCEPTION 'about %', payloads[1]; END", "it raised an error"),
        (
            "foreign", "BEGIN RETURN QUERY SELECT gen_random_uuid(); END",
            "it answered ids that it was not asked about"
        ),
        ("nothing", "BEGIN RETURN NEXT NULL::uuid; END", "it answered ids that it was not asked about"),
        ("prying", "BEGIN RETURN QUERY SELECT batch FROM postbell.leases; END", "a right is missing"),
        ("dropped", "BEGIN RETURN; END", "its function is gone"),
        ("revoked", "BEGIN RETURN; END", "its function is gone"),
    ]

    @Test func `A hook that fails holds back its own kind alone, and lets it go when it answers again`() async throws {
        try await Self.on { stage in
            for item in Self.failing { try await Self.hook(stage, item.kind, item.body) }
            let kinds = Self.failing.map(\.kind)
            try await stage.run(
                """
                DROP FUNCTION app.dropped;
                REVOKE EXECUTE ON FUNCTION app.revoked FROM postbell_dispatcher
                """)
            try await Self.enqueue(stage, kinds + ["approval_requested"])
            try await Self.enqueue(stage, ["raises"], suffix: "-short", expires: "now() + interval '3 s'")
            let worker = try stage.startWorker()
            try await stage.waitFor("approval_requested", "dispatched")
            try await eventually("each kind's trouble is told") {
                kinds.allSatisfy {
                    worker.errors.contains(
                        "hook of the kind fails: none of its notifications is sent until it answers\" kind=\($0)")
                }
            }
            for item in Self.failing {
                let line = worker.errors.split(separator: "\n").first {
                    $0.contains("hook of the kind fails") && $0.contains("kind=\(item.kind) ")
                }
                #expect(line?.contains(item.cause) == true, "\(line ?? "")")
            }
            try await eventually("people see it") {
                try await stage.texts("SELECT kind FROM postbell.hook_health ORDER BY kind") == kinds.sorted()
            }
            try await stage.waitFor("raises-short", "expired")
            for kind in kinds {
                #expect(try await stage.status(kind) == "pending")
                #expect(try await stage.outcomes(kind) == [], "no attempt, and no row on the ledger")
            }
            // Another notification of another kind, while they fail.
            try await Self.enqueue(stage, ["approval_requested"], suffix: "-2")
            try await stage.waitFor("approval_requested-2", "dispatched")

            for kind in kinds { try await Self.function(stage, kind, "BEGIN RETURN; END") }
            for kind in kinds {
                try await stage.waitFor(kind, "dispatched")
                #expect(
                    try await stage.texts(
                        """
                        SELECT l.outcome || ' ' || l.attempt FROM postbell.ledger l
                        JOIN postbell.outbox o ON o.id = l.notification_id WHERE o.dedupe_key = '\(kind)'
                        """) == ["delivered 1"], "nothing was spent while it waited")
            }
            try await eventually("the end is told") {
                kinds.allSatisfy { worker.errors.contains("hook of the kind no longer fails\" kind=\($0)") }
            }
            #expect(try await worker.stop() == 0)
            for kind in kinds {
                let told = worker.errors.split(separator: "\n").filter {
                    $0.contains("hook of the kind fails") && $0.contains("kind=\(kind) ")
                }
                #expect(told.count == 1, "one alarm at its beginning")
            }
            #expect(!worker.errors.contains("quince"), "an error of the app's may hold a payload")
            #expect(!worker.errors.contains("lane is"))
            #expect(try await stage.audit() == [])
        }
    }

    /// In order, not in time: while the call still runs, others of the same batch are accepted, claims and settles go
    /// on, and another hooked kind gets its answer.
    @Test func `A hook that hangs holds up nothing else`() async throws {
        try await Self.on { stage in
            try await Self.hook(stage, "hangs", "BEGIN PERFORM pg_sleep(3600); END", timeout: "10 s")
            try await Self.hook(stage, "fresh", "BEGIN RETURN; END")
            try await Self.enqueue(stage, ["hangs", "approval_requested", "fresh"])
            let worker = try stage.startWorker()
            let hangs = """
                SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event = 'PgSleep' AND application_name = 'postbell hooks'
                """
            try await eventually("the hook hangs") { try await stage.texts(hangs) == ["1"] }
            for key in ["approval_requested", "fresh"] { try await stage.waitFor(key, "dispatched") }
            try await Self.enqueue(stage, ["hangs", "approval_requested", "fresh"], suffix: "-2")
            for key in ["approval_requested-2", "fresh-2"] { try await stage.waitFor(key, "dispatched") }
            #expect(try await stage.texts(hangs) == ["1"], "one call of a kind at a time, and it still runs")
            #expect(!worker.errors.contains("hook of the kind fails"))
            // A stop does not wait for it.
            #expect(try await worker.stop() == 0)
            for key in ["hangs", "hangs-2"] {
                #expect(try await stage.status(key) == "pending")
                #expect(try await stage.outcomes(key) == [])
            }
            try await eventually("the server ends the call of a worker that is gone") {
                try await stage.texts(hangs) == ["0"]
            }
            #expect(try await stage.audit() == [])
        }
    }

    /// The claim's facts are looked at again behind the answer, when that has taken longer than a check counts.
    @Test func `What is superseded while a slow hook is asked is not sent`() async throws {
        try await Self.on { stage in
            try await stage.run("CREATE TABLE app.done (x int); ALTER TABLE app.done OWNER TO hook_app")
            try await Self.hook(
                stage, "slow",
                """
                BEGIN
                    WHILE NOT EXISTS (SELECT FROM app.done) LOOP
                        PERFORM pg_sleep(0.02);
                    END LOOP;
                    PERFORM pg_sleep(0.3);
                END
                """, timeout: "10 s")
            try await Self.enqueue(stage, ["slow"])
            let worker = try stage.startWorker(["POSTBELL_RECHECK_AFTER": "200ms"])
            try await eventually("the hook is asked") {
                try await stage.texts(
                    """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE datname = current_database() AND query LIKE '%ask_hook%' AND state = 'active'
                        AND pid <> pg_backend_pid()
                    """) == ["1"]
            }
            try await stage.run(
                "SELECT postbell.supersede('default', 's-slow'); INSERT INTO app.done VALUES (1)")
            try await stage.waitFor("slow", "superseded")
            #expect(try await stage.outcomes("slow") == ["skipped"])
            #expect(await stage.apns.requests.isEmpty)
            #expect(try await worker.stop() == 0)
            #expect(!worker.errors.contains("hook of the kind fails"))
            #expect(try await stage.audit() == [])
        }
    }

    @Test func `A hook is asked from when a running worker has read of it, and until it is removed`() async throws {
        try await Self.on { stage in
            try await Self.hook(stage, "fresh", "BEGIN RETURN; END")
            try await Self.enqueue(stage, ["fresh"])
            let worker = try stage.startWorker()
            try await stage.waitFor("fresh", "dispatched")
            // Set while the worker runs, which learns of it with its next look at the catalog.
            try await Self.hook(stage, "late", "BEGIN RETURN QUERY SELECT unnest(ids); END")
            try await Self.enqueue(stage, ["late"])
            try await stage.waitFor("late", "superseded")
            // A new function for the same hook, and its removal.
            try await stage.run("SELECT postbell.set_hook('late', 'stale', NULL)")
            try await eventually("the hook is gone from the worker") {
                let suffix = "-\(Int.random(in: 0..<(.max)))"
                let key = "late\(suffix)"
                try await Self.enqueue(stage, ["late"], suffix: suffix)
                try await eventually("it ends") { try await stage.status(key) != "pending" }
                return try await stage.status(key) == "dispatched"
            }
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }
}
