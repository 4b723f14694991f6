import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The store behind its port: two sessions of its own, in the dispatcher's role.
@Suite(.timeLimit(.minutes(5)))
struct StoreTests {
    private static func with(
        _ server: DatabaseServer, _ body: (Outbox, PostgresOutboxStore) async throws -> Void
    ) async throws {
        try await Outbox.on(server) { outbox in
            let store = try PostgresOutboxStore(
                outbox.database.configuration(role: "postbell_dispatcher", worker: true), on: DatabaseServer.loop,
                owner: Worker.identifier(), name: "test")
            await store.start()
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(outbox, store)) } catch { outcome = .failure(error) }
            await store.stop()
            try outcome.get()
        }
    }

    private static func request(_ shares: [WaitingShare], batch: Identifier = Worker.identifier()) -> ClaimRequest {
        ClaimRequest(
            batch: batch, route: shares[0].route, crashClass: shares[0].crashClass,
            credits: shares.map { ShareCredit(share: $0.share, rows: 10, mark: .start) }, lease: .seconds(30),
            targetsPerRow: 10)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A row goes from the queue to the ledger through the port alone`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.enqueue("a", "b")
            let routes = try await store.routes()
            #expect(routes.map(\.provider) == ["none", "apns", "fcm"])
            #expect(routes[1].environment == "production" && routes[2].environment == "")
            let time = try await store.register(
                lanes: [LaneReport(name: "apns/production/default", routes: [1])], hooks: [], version: "1.0")
            let work = try await store.waitingWork(on: [1, 2])
            #expect(work.shares.map(\.share) == [Share(urgency: 0, tenant: 1)] && work.now >= time)
            let batch = try #require(try await store.claim(Self.request(work.shares)))
            #expect(try await store.claim(Self.request(work.shares)) == nil)
            let targets = batch.dispatches.map {
                RecheckTarget(notification: $0.notification, device: 1, tokenSequence: 1)
            }
            #expect(try await store.recheck(targets, batch: batch.identifier, route: 1) == [nil, nil])
            #expect(try await store.renew([batch.identifier], lease: .seconds(60)) == [batch.identifier])
            #expect(
                try await store.settle(batch.flush(1, 2)) == SettleReport(owned: true, ledgerRows: 2, returned: 0))
            #expect(try await store.apply([batch.effect(.succeeded)], maxFailures: 0) == [])
            let nothing = try await store.waitingWork(on: [1, 2])
            #expect(nothing.shares.isEmpty && nothing.now > work.now)
            #expect(try await outbox.texts("SELECT DISTINCT worker FROM postbell.ledger") == ["test"])
            try await store.unregister()
            #expect(try await outbox.value("SELECT stopped_at IS NOT NULL FROM postbell.workers") == "t")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A re-check names what fell out, and refuses for a lease that is gone`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            for principal in ["fine", "over", "expired", "revoked", "tokenless", "changed", "muted", "cancelled"] {
                try await outbox.device(of: principal)
                try await outbox.enqueue(principal, to: principal, more: "subject => '\(principal)'")
            }
            let work = try await store.waitingWork(on: [1])
            let batch = try #require(try await store.claim(Self.request(work.shares)))
            try await outbox.run(
                """
                SELECT postbell.supersede('default', 'over');
                UPDATE postbell.outbox SET expires_at = now() WHERE principal_id = 'expired';
                SELECT postbell.device_revoke(principal_id => 'revoked');
                UPDATE postbell.devices SET token = NULL WHERE principal_id = 'tokenless';
                UPDATE postbell.devices SET token_seq = 2 WHERE principal_id = 'changed';
                UPDATE postbell.devices SET muted_kinds = '{note}' WHERE principal_id = 'muted';
                INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
                SELECT id, 1, 'cancelled', 'erased' FROM postbell.outbox WHERE principal_id = 'cancelled'
                """)
            let targets = batch.dispatches.enumerated().map { index, row in
                RecheckTarget(
                    notification: row.notification, device: batch.targets[index].device, tokenSequence: 1)
            }
            #expect(
                try await store.recheck(targets, batch: batch.identifier, route: 1) == [
                    nil, .superseded, .expired, .revoked, .noToken, .tokenChanged, .muted, .erased,
                ])
            _ = try await store.adopt([batch.identifier])
            await #expect(throws: StoreError.self) {
                try await store.recheck(targets, batch: batch.identifier, route: 1)
            }
        }
    }

    /// M6: one bad value never holds a batch.
    @Test(arguments: DatabaseServer.allCases)
    func `A value that the database refuses costs its own text only`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c", "d", "e")
            let work = try await store.waitingWork(on: [1])
            let batch = try #require(try await store.claim(Self.request(work.shares)))
            var flush = batch.flush(1, 2, 3, 4, 5)
            let bad = Outcome(.retry, status: 503, reason: "zero\0byte")
            flush.ledger[3] = batch.row(
                batch.dispatches[3], batch.targets[3], outcome: bad, final: false, retryAfter: .zero)
            flush.returns = [.back(4)]
            #expect(try await store.settle(flush) == SettleReport(owned: true, ledgerRows: 5, returned: 1))
            #expect(try await store.settle(flush) == SettleReport(owned: false, ledgerRows: 0, returned: 0))
            #expect(
                try await outbox.ledger() == [
                    "a 1 delivered final", "b 1 delivered final", "c 1 delivered final", "d 1 retry",
                    "e 1 delivered final",
                ])
            #expect(try await outbox.places().filter { $0.hasSuffix("queue") } == ["d queue"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Many shares are found in rounds, and none is forgotten`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.run(
                """
                INSERT INTO postbell.tenants (tenant_id) SELECT 'tenant-' || n FROM generate_series(1, 150) n;
                INSERT INTO postbell.outbox (tenant_id, principal_id, kind, dedupe_key)
                SELECT 'tenant-' || n, 'anna', 'note', 'a' FROM generate_series(1, 150) n;
                UPDATE postbell.queue SET route_no = 1
                """)
            var found: Set<Share> = []
            for _ in 1...3 {
                let shares = try await store.waitingWork(on: [1]).shares
                #expect(!shares.isEmpty && shares.count <= 2 * WaitingStatement.sharesPerRoute)
                found.formUnion(shares.map(\.share))
            }
            #expect(found.count == 150)
            #expect(try await !store.waitingWork(on: [1]).shares.isEmpty)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What is due later and what crashed is found as well`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.enqueue("a", more: "not_before => now() + interval '1 h'")
            try await outbox.enqueue("b", "c", more: "urgency => 'bulk'")
            try await outbox.run(
                """
                UPDATE postbell.queue q SET crashes = CASE dedupe_key WHEN 'b' THEN 3 ELSE 2 END
                FROM postbell.outbox o WHERE o.id = q.notification_id AND dedupe_key <> 'a'
                """)
            let work = try await store.waitingWork(on: [1])
            #expect(work.shares.map(\.crashClass) == [.clean, .suspect])
            #expect(work.shares[0].dueAt - work.now > .seconds(3500))
            let claimed = try #require(
                try await store.claim(
                    ClaimRequest(
                        batch: Worker.identifier(), route: 1, crashClass: .suspect,
                        credits: [ShareCredit(share: work.shares[1].share, rows: 1, mark: .start)],
                        lease: .seconds(30), targetsPerRow: 10)))
            #expect(claimed.dispatches.count == 1)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A value that is refused holds its own position alone`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c", "d", "e")
            let work = try await store.waitingWork(on: [1])
            let batch = try #require(try await store.claim(Self.request(work.shares)))
            var flush = batch.flush(1, 2, 3, 4)
            let never = Timestamp(microseconds: -300_000_000_000_000_000)
            let row = flush.ledger[1]
            flush.ledger[1] = LedgerRow(
                identifier: row.identifier, notification: row.notification, tenant: row.tenant, device: row.device,
                tokenSequence: row.tokenSequence, attempt: row.attempt, position: row.position,
                outcome: row.outcome, isFinal: true, retryAfter: nil, attemptedAt: never, answeredAt: nil)
            flush.returns = [.back(3), .back(4)]
            try await outbox.run(
                """
                CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN RAISE 'not this one'; END $$;
                CREATE TRIGGER refuse BEFORE INSERT ON postbell.queue FOR EACH ROW
                    WHEN (NEW.notification_id = '\(batch.dispatches[2].notification)') EXECUTE FUNCTION public.refuse()
                """)
            let report = try await store.settle(flush)
            #expect(report.refused == [2, 3])
            #expect(report.refusal != nil)
            #expect(report.owned && report.ledgerRows == 3 && report.returned == 1)
            let open = "SELECT open FROM postbell.leases"
            #expect(try await outbox.texts(open) == ["01101"], "1 is settled, 4 is back, 5 was not touched")
            #expect(try await store.settle(flush).ledgerRows == 0, "and may be repeated")
            #expect(try await outbox.texts(open) == ["01101"])
            // A right that is missing is no value's fault: the whole flush is repeated, once it is back.
            try await outbox.run("REVOKE INSERT ON postbell.deliveries FROM postbell_dispatcher")
            await #expect(throws: StoreError.self) { try await store.settle(batch.flush(5)) }
            try await outbox.run("GRANT INSERT ON postbell.deliveries TO postbell_dispatcher")
            #expect(try await store.settle(batch.flush(5)).refused.isEmpty)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Awake keys are held once and let go`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            let held =
                "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database "
                + "WHERE datname = current_database()) ORDER BY objid"
            #expect(try await store.holdAwake([1]) == [1])
            #expect(try await store.holdAwake([1, 2]) == [1, 2])
            #expect(try await outbox.texts(held) == ["1", "2"])
            try await outbox.run("SELECT pg_advisory_lock(postbell.awake_class(), 3)")
            #expect(try await store.holdAwake([2, 3]) == [2], "tried, never waited for")
            try await store.releaseAwake()
            try await store.releaseAwake()
            #expect(try await outbox.texts(held) == ["3"], "not counted twice")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A session that broke is made again and holds no keys`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            #expect(try await store.holdAwake([1]) == [1])
            try await outbox.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                    + "AND pid <> pg_backend_pid()")
            var again: [RouteNumber] = []
            var failures = 0
            while again.isEmpty && failures < 50 {
                do { again = try await store.holdAwake([1, 2]) } catch {
                    #expect((error as? StoreError)?.kind == .connection)
                    failures += 1
                }
            }
            // The store may have heard of the break only now: then it asks for both on the new session.
            try await store.releaseAwake()
            #expect(try await store.holdAwake([1, 2]) == [1, 2])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Kinds are read with their texts, keys and retry policy`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.run(
                """
                SELECT postbell.define_kind('rich', 'template', '{"b": "int!", "a": "enum(x,y)?"}',
                    '{"title": "T {b}", "subtitle": "S", "body": "{{B}}", "container": "app"}', priority => 5::smallint,
                    interruption_level => 'time-sensitive', category => 'c', sound => 'default',
                    mutable_content => true, group_by_thread => false, provider_ttl => '90 s', retry => '2s..5m');
                SELECT postbell.define_kind('bare', 'raw', producers => '{pg_monitor}', retry => '500ms,1h')
                """)
            let kinds = try await store.kinds()
            let rich = try #require(kinds.first { $0.name == "rich" })
            #expect(rich.keys == [PayloadKey(name: "a", type: .enum), PayloadKey(name: "b", type: .int)])
            #expect(
                rich.presentation
                    == .template(
                        Template(
                            title: TemplateText("T {b}"), subtitle: TemplateText("S"), body: TemplateText("{{B}}"))))
            #expect(rich.container == "app" && rich.priority == 5 && rich.interruptionLevel == "time-sensitive")
            #expect(rich.category == "c" && rich.sound == "default" && rich.isMutable && !rich.usesThread)
            #expect(rich.providerLife == .seconds(90))
            #expect(rich.retry == .exponential(base: .seconds(2), cap: .seconds(300)))
            let bare = try #require(kinds.first { $0.name == "bare" })
            #expect(bare.presentation == .raw && bare.retry == .list([.milliseconds(500), .seconds(3600)]))
            #expect(bare.providerLife == nil)
        }
    }

    /// A kind that came around `define_kind`, or from a newer one, is unreadable, and no other is.
    @Test(arguments: DatabaseServer.allCases)
    func `A kind that cannot be read is loaded as such beside the others`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            let before = try await store.kinds()
            let strange = [
                ("payload_keys = '{\"k\": {\"type\": \"colour\"}}'", "the type of a payload key"),
                ("payload_keys = '{\"k\": {}}'", "the type of a payload key"),
                ("payload_keys = '[]'", "the type of a payload key"), ("retry = '1 hour'", "its retry policy"),
                ("presentation = 'hologram'", "its presentation or content"),
                ("content = '7'", "its presentation or content"), ("content = '[]'", "its presentation or content"),
                ("content = '{\"title\": 7}'", "its presentation or content"),
                ("content = '{\"title\": \"{\"}'", "its presentation or content"),
                ("content = '{\"title\": {\"by\": \"k\", \"else\": []}}'", "its presentation or content"),
                ("content = '{\"title\": \"x\", \"data\": 7}'", "its presentation or content"),
                ("content = '{\"title\": \"x\", \"data\": {\"a\": \"{$moon}\"}}'", "its presentation or content"),
                ("content = '{\"title\": \"x\", \"labels\": {\"a\": {}}}'", "its presentation or content"),
            ]
            for (change, what) in strange {
                try await outbox.run(
                    """
                    DELETE FROM postbell.kinds WHERE name = 'odd';
                    SELECT postbell.define_kind('odd', 'template', content => '{"title": "x"}');
                    UPDATE postbell.kinds SET \(change) WHERE name = 'odd'
                    """)
                let kinds = try await store.kinds()
                #expect(kinds.filter { $0.name != "odd" } == before, "\(change)")
                #expect(kinds.filter { $0.name == "odd" }.map(\.unreadable) == [what], "\(change)")
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Upkeep resolves, ends what is overdue, recovers and prepares days`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.enqueue("a", to: "nobody")
            try await outbox.device()
            try await outbox.enqueue("b", "c")
            try await outbox.run(
                """
                UPDATE postbell.outbox SET expires_at = now() WHERE dedupe_key = 'b';
                UPDATE postbell.queue SET due_at = now() + interval '1 h' WHERE route_no = 1
                """)
            #expect(try await store.resolveUnrouted(limit: 10) == 2, "a reaches nobody, b is overdue")
            #expect(try await outbox.places() == ["a dispatched no_device", "b expired expired", "c queue"])
            let (now, never) = (Timestamp(microseconds: 4_000_000_000_000_000), Timestamp(microseconds: 0))
            let report = try await store.recover(knownAt: now, healthySince: never, limit: 10, maxCrashes: 5)
            #expect(report.leases == 0)
            let day = "to_char(now() AT TIME ZONE 'UTC' + interval '3 d', 'YYYYMMDD')"
            // The database was made from one that may be of yesterday.
            try await store.preparePartitions()
            try await outbox.run("DO $$ BEGIN EXECUTE 'DROP TABLE postbell.deliveries_' || \(day); END $$")
            try await store.preparePartitions()
            #expect(try await outbox.value("SELECT to_regclass('postbell.deliveries_' || \(day)) IS NOT NULL") == "t")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What is overdue ends, also when old answers cannot be removed`(server: DatabaseServer) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            try await outbox.enqueue("a")
            try await outbox.run(
                """
                UPDATE postbell.outbox SET expires_at = now();
                UPDATE postbell.queue SET due_at = now() + interval '1 h';
                REVOKE EXECUTE ON FUNCTION postbell.prune_idempotency_keys(int) FROM postbell_dispatcher
                """)
            await #expect(throws: StoreError.self) { _ = try await store.resolveUnrouted(limit: 10) }
            #expect(try await outbox.places() == ["a expired expired"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Retention removes rows and days, and one that fails does not keep the other`(
        server: DatabaseServer
    ) async throws {
        try await Self.with(server) { outbox, store in
            try await outbox.device()
            let worker = try await outbox.worker()
            try await RetentionTests.over(["a", "b"], outbox, worker)
            try await outbox.age(days: 40)
            #expect(try await store.retain() == false, "nobody said for how long anything is kept")
            try await outbox.keep(days: 79)
            #expect(try await store.retain(), "a day was dropped, and there may be another")
            #expect(try await store.retain() == false)
            try await outbox.run(
                "REVOKE EXECUTE ON FUNCTION postbell.drop_ledger_day() FROM postbell_dispatcher; "
                    + "SELECT postbell.set_retention('outbox', '30 days')")
            await #expect(throws: StoreError.self) { _ = try await store.retain() }
            #expect(try await outbox.kept() == [])
            try await outbox.run(
                "GRANT EXECUTE ON FUNCTION postbell.drop_ledger_day() TO postbell_dispatcher; "
                    + "REVOKE EXECUTE ON FUNCTION postbell.retain(int) FROM postbell_dispatcher; "
                    + "SELECT postbell.set_retention('deliveries', '30 days')")
            await #expect(throws: StoreError.self) { _ = try await store.retain() }
            #expect(try await outbox.ledger() == [])
            #expect(
                try await outbox.value(
                    "SELECT removed_before > now() - interval '79 days' FROM postbell.retention "
                        + "WHERE table_name = 'deliveries'") == "t")
            // Its session was closed; the other two go on, and it is made anew.
            try await outbox.run("GRANT EXECUTE ON FUNCTION postbell.retain(int) TO postbell_dispatcher")
            #expect(try await store.retain())
            #expect(try await store.resolveUnrouted(limit: 10) == 0)
        }
    }
}
