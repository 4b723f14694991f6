import FakeProviders
import Foundation
import Support
import Testing

/// What an agent platform asks of the dispatch of its notifications (docs/seeds.md): a safe race of dispatchers,
/// bounded retries within the deadline, and silence about what is over.
@Suite(.serialized, .timeLimit(.minutes(3))) struct AgentPlatformTests {
    private static let shortLease = ["POSTBELL_LEASE": "5s", "POSTBELL_REQUEST_TIMEOUT": "2s"]

    /// Requests by notification and device.
    private static func sends(_ stage: Stage) async -> [String: [SeenRequest]] {
        Dictionary(grouping: await stage.apns.requests) { "\($0.headers["apns-id"] ?? "") \($0.token)" }
    }

    // MARK: Concurrent dispatch is safe, and replay is bounded

    @Test(arguments: DatabaseServer.allCases)
    func twoDispatchersThatRaceForEachRowSendItToEachTargetOnceWithOneLedgerRow(
        server: DatabaseServer
    ) async throws {
        try await Stage.on(server) { stage in
            try await stage.register("ada", token: "0a01")
            try await stage.register("ada", token: "0a02", device: "tablet")
            let workers = [try stage.startWorker(), try stage.startWorker()]
            try await eventually("both are there") {
                try await stage.texts("SELECT count(*) FROM postbell.workers") == ["2"]
            }
            // One by one, so that both are woken for each.
            for number in 0..<300 { try await stage.enqueue("ada", key: "k\(number)") }
            try await eventually("all is settled") {
                try await stage.texts("SELECT count(*) FROM postbell.places") == ["0"]
            }
            for worker in workers { #expect(try await worker.stop() == 0) }
            let sends = await Self.sends(stage)
            #expect(sends.count == 600 && sends.values.allSatisfy { $0.count == 1 })
            #expect(
                try await stage.texts(
                    """
                    SELECT count(*) || ' ' || count(DISTINCT (notification_id, device_no)) || ' ' || max(attempt)
                    FROM postbell.ledger WHERE outcome = 'delivered' AND final
                    """) == ["600 600 1"])
            #expect(try await stage.texts("SELECT count(*) FROM postbell.ledger") == ["600"])
            #expect(try await stage.texts("SELECT count(DISTINCT worker) FROM postbell.ledger") == ["2"])
            #expect(try await stage.texts("SELECT DISTINCT status FROM postbell.notifications") == ["dispatched"])
            #expect(try await stage.audit() == [])
        }
    }

    /// The provider has taken the push and the worker dies before it writes that down.
    @Test func aCrashBetweenAcceptAndLedgerSendsAgainUnderTheSameCollapseIDAndRecordsOneAttemptMore() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a01")
            // Recovers the lease; sends nothing, because the app is not its own.
            let other = try stage.startWorker(Self.shortLease.merging(["APNS_TOPIC": "com.example.other"]) { $1 })
            let doomed = try stage.startWorker(
                Self.shortLease.merging(["TEST_CRASH_AT": "settle-unsent:1:KILL"]) { $1 })
            try await stage.enqueue("ada", key: "k")
            #expect(try await doomed.end() == -SIGKILL)
            #expect(await stage.apns.requests.map(\.status) == [200])
            #expect(try await stage.outcomes("k") == [], "accepted, and not on the ledger")
            let next = try stage.startWorker()
            try await stage.waitFor("k", "dispatched")
            let requests = await stage.apns.requests
            #expect(requests.map(\.status) == [200, 200])
            for header in ["apns-id", "apns-collapse-id"] {
                #expect(Set(requests.map { $0.headers[header] ?? "" }).count == 1, "\(header)")
            }
            #expect(requests.allSatisfy { $0.headers["apns-collapse-id"] == "k" })
            // One row for each request.
            #expect(try await stage.outcomes("k") == ["unknown", "delivered"])
            for worker in [next, other] { #expect(try await worker.stop() == 0) }
            #expect(try await stage.audit() == [])
        }
    }

    // MARK: Retry is bounded, and the deadline is kept

    @Test func whatFailsIsTriedAgainAfterTheDeclaredWaitsAndEndsAsFailedAtTheCeiling() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "fa503a")
            let worker = try stage.startWorker(["POSTBELL_RETRY": "1s,2s", "POSTBELL_RETRY_BUDGET": "100%"])
            try await stage.enqueue("ada", key: "k")
            try await stage.waitFor("k", "failed")
            #expect(await stage.apns.requests.map(\.status) == [503, 503, 503])
            let attempts = try await stage.texts(
                "SELECT outcome || ' ' || attempt || ' ' || final FROM postbell.ledger ORDER BY id")
            #expect(attempts == ["retry 1 false", "retry 2 false", "retry 3 true"])
            #expect(
                try await stage.texts(
                    """
                    SELECT attempted_at - lag(attempted_at) OVER w >= lag(make_interval(secs => attempt)) OVER w
                    FROM postbell.ledger WINDOW w AS (ORDER BY id)
                    """) == ["", "true", "true"], "the first wait is a second, the next one two")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aRowPastItsDeadlineEndsAsExpiredAndIsNeverSent() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a01")
            try await stage.register("bob", token: "fa503a")
            try await stage.enqueue("ada", key: "late")
            try await stage.enqueue("bob", key: "failing")
            // One has waited for a worker for too long; the other's deadline comes before its next attempt.
            try await stage.run(
                """
                UPDATE postbell.outbox SET expires_at = clock_timestamp() WHERE dedupe_key = 'late';
                UPDATE postbell.outbox SET expires_at = clock_timestamp() + interval '60 s' WHERE dedupe_key = 'failing'
                """)
            let worker = try stage.startWorker(["POSTBELL_RETRY": "2m", "POSTBELL_RETRY_BUDGET": "100%"])
            for key in ["late", "failing"] { try await stage.waitFor(key, "expired") }
            #expect(await stage.apns.requests.map(\.status) == [503])
            #expect(try await stage.outcomes("late") == [])
            #expect(try await stage.outcomes("failing").first == "retry")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    // MARK: What is over is not told

    /// An approval that is decided, a question that is answered, a run that waits no longer: each said in the
    /// transaction that decides it. And an approval whose own deadline has passed.
    @Test func whatIsResolvedBeforeItsDispatchEndsAsSupersededWithoutARequest() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a01")
            for key in ["approval", "question", "run", "overdue"] {
                try await stage.enqueue("ada", key: key, subject: "\(key):1")
            }
            try await stage.run(
                """
                BEGIN;
                SELECT postbell.supersede('default', 'approval:1');
                SELECT postbell.supersede('default', 'question:1');
                SELECT postbell.supersede('default', 'run:1');
                UPDATE postbell.outbox SET expires_at = clock_timestamp() WHERE dedupe_key = 'overdue';
                COMMIT
                """)
            try await stage.enqueue("ada", key: "next", subject: "approval:1")
            let worker = try stage.startWorker()
            for key in ["approval", "question", "run"] { try await stage.waitFor(key, "superseded") }
            try await stage.waitFor("overdue", "expired")
            // A new approval of the same subject is another matter.
            try await stage.waitFor("next", "dispatched")
            let sent = await stage.apns.requests.compactMap { $0.headers["apns-collapse-id"] }
            #expect(sent == ["next"])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// Where only the app knows: a hook of the kind says which runs wait no longer.
    @Test func aRunThatWaitsNoLongerIsToldByTheAppsOwnFunctionAndEndsAsSuperseded() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a01")
            try await stage.run(
                """
                DO $$ BEGIN CREATE ROLE hook_app; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
                CREATE SCHEMA app AUTHORIZATION hook_app;
                GRANT USAGE ON SCHEMA app TO postbell_dispatcher;
                SET ROLE hook_app;
                CREATE TABLE app.runs (subject text PRIMARY KEY, waits boolean NOT NULL);
                INSERT INTO app.runs VALUES ('run:1', false), ('run:2', true);
                CREATE FUNCTION app.runs_over(
                    ids uuid[], tenants text[], principals text[], subjects text[], payloads jsonb[])
                RETURNS SETOF uuid
                LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
                    SELECT n.id FROM unnest(ids, subjects) n(id, subject)
                    JOIN app.runs r ON r.subject = n.subject WHERE NOT r.waits
                $$;
                REVOKE ALL ON FUNCTION app.runs_over FROM PUBLIC;
                GRANT EXECUTE ON FUNCTION app.runs_over TO postbell_dispatcher;
                RESET ROLE;
                SELECT postbell.set_hook('approval_requested', 'stale', 'app.runs_over'::regproc, '2 s')
                """)
            for number in [1, 2] { try await stage.enqueue("ada", key: "r\(number)", subject: "run:\(number)") }
            let worker = try stage.startWorker()
            try await stage.waitFor("r1", "superseded")
            try await stage.waitFor("r2", "dispatched")
            #expect(await stage.apns.requests.compactMap { $0.headers["apns-collapse-id"] } == ["r2"])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// A deleted session takes what is open of its thread with it, in the same transaction or not at all.
    @Test func anErasedSessionEmptiesItsOpenNotificationsInTheSameTransactionAndNoneIsSent() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a01")
            for (key, thread) in [("one", "session:1"), ("two", "session:1"), ("other", "session:2")] {
                try await stage.run(
                    """
                    INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, thread, payload)
                    VALUES ('ada', 'approval_requested', '\(key)', '\(thread)',
                        jsonb_build_object('approval_id', gen_random_uuid())::text)
                    """)
            }
            let emptied = "SELECT dedupe_key FROM postbell.outbox WHERE payload = '{}' ORDER BY 1"
            try await stage.run("BEGIN; SELECT postbell.erase('default', 'session:1'); ROLLBACK")
            #expect(try await stage.texts(emptied) == [])
            try await stage.run("BEGIN; SELECT postbell.erase('default', 'session:1')")
            #expect(try await stage.texts(emptied) == ["one", "two"], "with the caller's own changes")
            try await stage.run("COMMIT")
            let worker = try stage.startWorker()
            for key in ["one", "two"] { try await stage.waitFor(key, "cancelled") }
            try await stage.waitFor("other", "dispatched")
            #expect(await stage.apns.requests.compactMap { $0.headers["apns-collapse-id"] } == ["other"])
            #expect(try await stage.outcomes("one") + stage.outcomes("two") == [])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }
}
