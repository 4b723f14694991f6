import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Who may do what: the grants and the row security of migration 0011, tried from the outside.
@Suite(.timeLimit(.minutes(5)))
struct RightsTests {
    static let forbiddenToDispatchers = [
        "INSERT INTO postbell.outbox (principal_id, kind, dedupe_key) VALUES ('a', 'note', 'z')",
        "UPDATE postbell.outbox SET payload = 'x'",
        "DELETE FROM postbell.outbox",
        "DELETE FROM postbell.deliveries",
        "UPDATE postbell.deliveries SET outcome = 0",
        "DELETE FROM postbell.settlements",
        "UPDATE postbell.settlements SET status = 'failed'",
        "INSERT INTO postbell.settlements (seq, notification_id, tenant_no, status, reason) OVERRIDING SYSTEM VALUE "
            + "VALUES (1, gen_random_uuid(), 1, 'failed', 'ceiling')",
        "UPDATE postbell.leases SET ids = '{}'",
        "UPDATE postbell.leases SET owner = gen_random_uuid()",
        "UPDATE postbell.queue SET due_at = now()",
        "UPDATE postbell.queue SET prior = false",
        "UPDATE postbell.devices SET principal_id = 'evil'",
        "UPDATE postbell.devices SET token = NULL",
        "INSERT INTO postbell.devices (principal_id) VALUES ('a')",
        "DELETE FROM postbell.devices",
        "INSERT INTO postbell.supersessions SELECT gen_random_uuid(), now(), 'default', 's'",
        "INSERT INTO postbell.events (id, at, tenant_id, name, key) SELECT gen_random_uuid(), now(), 'd', 'n', 'k'",
        "SELECT * FROM postbell.secrets",
        "UPDATE postbell.settings SET value = 'off'",
        "UPDATE postbell.kinds SET enabled = false",
        "DELETE FROM postbell.workers",
        "SELECT postbell.device_register('a', 'b', 'fcm', 'app', 'token-1234')",
        "SELECT postbell.device_get(gen_random_uuid())",
        "SELECT postbell.device_list('anna')",
        "SELECT postbell.device_activate(gen_random_uuid())",
        "SELECT postbell.device_test(gen_random_uuid())",
        "SELECT postbell.devices_import('[]')",
        "SELECT * FROM postbell.idempotency_keys",
        "DELETE FROM postbell.idempotency_keys",
        "SELECT postbell.request_hash('x')",
        "SELECT postbell.define_kind('x', 'template', '{}', '{\"title\": \"x\"}')",
        "SELECT postbell.supersede('default', 's')",
        "SELECT postbell.erase('default', 't')",
        "INSERT INTO postbell.erasures SELECT gen_random_uuid(), now(), 'default', 't'",
        "INSERT INTO postbell.receipts SELECT now(), 'default', 'anna', 's'",
        "SELECT postbell.sync('anna')",
        "SELECT postbell.inbox('anna')",
        "SELECT postbell.forget('anna')",
        "SELECT postbell.forget_tenant('default')",
        "SELECT postbell.acknowledge(gen_random_uuid())",
        "SELECT * FROM postbell.acknowledgements",
        "SELECT postbell.enqueue('note', 'anna', 'x')",
        "SELECT postbell.set_retention('outbox', '1 day')",
        "SELECT postbell.retain_outbox(now(), 1)",
        "UPDATE postbell.retention SET keep = '1 day'",
        "CREATE TABLE postbell.mine (x int)",
        "TRUNCATE postbell.queue",
    ]

    /// M10, S5: everything that a worker does works in its role and under row security; nothing else does.
    @Test(arguments: DatabaseServer.allCases)
    func `A dispatcher may move work and append facts, and nothing more`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c")
            try await outbox.enqueue("d", to: "nobody")
            let worker = try await outbox.worker()
            for statement in Self.forbiddenToDispatchers {
                #expect(await worker.connection.refusal(statement) == "42501", "\(statement)")
            }
            let batch = try await worker.claimed()
            #expect(batch.dispatches.count == 3, "FOR UPDATE under row security locks what it sees")
            #expect(try await worker.recheck(batch) == [nil, nil, nil])
            #expect(try await worker.renew(batch.identifier).count == 1)
            var flush = batch.flush(1, 2)
            flush.returns = [.back(2)]
            #expect(try await worker.settle(flush).returned == 1)
            #expect(try await worker.apply(batch.effect(.succeeded)) == [])
            #expect(try await worker.adopt(batch.identifier) == 1)
            #expect(try await worker.resolve() == 1)
            _ = try await worker.claimed(lease: .microseconds(1))
            #expect(try await worker.recover().rows == 2)
            #expect(try await worker.connection.texts("SELECT fault FROM postbell.audit()") == [])
        }
    }

    /// The list that `postbell check` compares with is what the migrations grant, to the letter.
    @Test(arguments: DatabaseServer.allCases)
    func `The list of a dispatcher's grants is what the database has`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let dispatcher = try await outbox.database.connect(role: "postbell_dispatcher")
            let rights = try await RoleRights.read(from: dispatcher)
            #expect(rights.missing == [])
            #expect(rights.excess == [])
            let without = try await RoleRights.read(from: dispatcher, expecting: Array(Grant.dispatcher.dropFirst()))
            #expect(without.excess == [Grant.dispatcher[0]])
            let absent = Grant("UPDATE", .table, "outbox", column: "payload")
            let with = try await RoleRights.read(from: dispatcher, expecting: Grant.dispatcher + [absent])
            #expect(with.missing == [absent])
            await dispatcher.close()
            // The file behind the list is read as it stands, so a grant of another form would be missed: count them.
            let count = try await outbox.texts(
                """
                SELECT count(*) FROM (
                    SELECT x.grantee FROM pg_class c, aclexplode(c.relacl) x
                    WHERE c.relnamespace = 'postbell'::regnamespace
                    UNION ALL
                    SELECT x.grantee FROM pg_class c, pg_attribute a, aclexplode(a.attacl) x
                    WHERE c.relnamespace = 'postbell'::regnamespace AND a.attrelid = c.oid
                    UNION ALL
                    SELECT x.grantee FROM pg_proc p, aclexplode(p.proacl) x
                    WHERE p.pronamespace = 'postbell'::regnamespace
                    UNION ALL
                    SELECT x.grantee FROM pg_namespace n, aclexplode(n.nspacl) x WHERE n.nspname = 'postbell'
                ) g WHERE g.grantee = 'postbell_dispatcher'::regrole
                """)
            #expect(count == ["\(Grant.dispatcher.count)"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A producer writes its tenant's rows and reads back ids only`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let producer = try await outbox.database.connect(role: "postbell_producer")
            let made = try await producer.texts(
                "INSERT INTO postbell.outbox (principal_id, kind, dedupe_key) VALUES ('anna', 'note', 'a') RETURNING id"
            )
            #expect(made.count == 1)
            #expect(try await producer.texts("SELECT id FROM postbell.outbox") == made)
            for statement in [
                "SELECT payload FROM postbell.outbox", "SELECT principal_id FROM postbell.outbox",
                "UPDATE postbell.outbox SET payload = '{}'", "DELETE FROM postbell.outbox",
                "INSERT INTO postbell.outbox (id, principal_id, kind, dedupe_key) "
                    + "VALUES (gen_random_uuid(), 'anna', 'note', 'b')",
                "INSERT INTO postbell.outbox (tenant_id, principal_id, kind, dedupe_key) "
                    + "VALUES ('other', 'anna', 'note', 'b')",
                "SELECT * FROM postbell.devices", "SELECT * FROM postbell.queue", "SELECT * FROM postbell.deliveries",
                "INSERT INTO postbell.queue (due_at, notification_id, tenant_no, route_no, urgency) "
                    + "VALUES (now(), gen_random_uuid(), 1, 1, 0)",
            ] {
                #expect(await producer.refusal(statement) == "42501", "\(statement)")
            }
            try await producer.execute("SET postbell.tenant_id = 'other'")
            #expect(try await producer.texts("SELECT id FROM postbell.outbox") == [])
            try await producer.execute(
                "SELECT postbell.enqueue('note', 'anna', 'a'); SELECT postbell.supersede('other', 's')")
            await producer.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A login that is listed may name its own tenant only`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let login = "test_login_\(outbox.database.name)"
            try await outbox.run(
                """
                CREATE ROLE \(login) LOGIN; GRANT postbell_producer, postbell_reader TO \(login);
                INSERT INTO postbell.role_tenants VALUES ('\(login)', 'mine');
                SELECT postbell.enqueue('note', 'anna', 'a')
                """)
            let confined = try await outbox.database.connect(login: login)
            #expect(await confined.refusal("SELECT postbell.enqueue('note', 'anna', 'a')") == "PB005")
            #expect(await confined.refusal("SELECT count(*) FROM postbell.audit()") == "PB005")
            #expect(try await confined.texts("SELECT count(*) FROM postbell.notifications") == ["0"])
            try await confined.execute("SET postbell.tenant_id = 'mine'; SELECT postbell.enqueue('note', 'anna', 'a')")
            #expect(try await confined.texts("SELECT tenant_id FROM postbell.notifications") == ["mine"])
            #expect(await confined.refusal("SELECT postbell.supersede('other', 's')") == "PB005")
            #expect(await confined.refusal("SELECT postbell.erase('other', 't')") == "PB005")
            try await confined.execute("SELECT postbell.supersede('mine', 's'), postbell.erase('mine', 't')")
            await confined.close()
            try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A reader sees the views, and neither token nor payload`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device(tenant: "other")
            try await outbox.enqueue("a", "b")
            try await outbox.run("SET postbell.tenant_id = 'other'; SELECT postbell.enqueue('note', 'anna', 'c')")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(1)
            _ = try await worker.settle(batch.flush(1))
            _ = try await worker.claimed(1)
            let reader = try await outbox.database.connect(role: "postbell_reader")
            func counts() async throws -> [String] {
                try await reader.texts(
                    """
                    SELECT n::text FROM (VALUES ((SELECT count(*) FROM postbell.notifications)),
                        ((SELECT count(*) FROM postbell.ledger)), ((SELECT sum(waiting) FROM postbell.queue_depth)),
                        ((SELECT coalesce(sum(open), 0) FROM postbell.in_flight)),
                        ((SELECT count(*) FROM postbell.audit()))) v(n)
                    """)
            }
            #expect(try await counts() == ["3", "1", "1", "1", "0"], "all tenants when none is named")
            try await reader.execute("SET postbell.tenant_id = 'other'")
            #expect(try await counts() == ["1", "0", "1", "0", "0"], "what is in flight is another's")
            for statement in [
                "SELECT token FROM postbell.devices", "SELECT * FROM postbell.devices",
                "SELECT payload FROM postbell.outbox", "SELECT * FROM postbell.outbox",
                "SELECT * FROM postbell.secrets", "SELECT * FROM postbell.idempotency_keys",
                "SELECT postbell.device_list('anna')", "DELETE FROM postbell.queue", "SELECT ids FROM postbell.leases",
                "UPDATE postbell.leases SET until = now()",
                "SELECT postbell.device_register('a', 'b', 'fcm', 'app', 'token-1234')",
            ] {
                #expect(await reader.refusal(statement) == "42501", "\(statement)")
            }
            await reader.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A registrar has its functions and no table`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            try await registrar.execute("SELECT postbell.device_register('anna', 'phone', 'fcm', 'app', 'token-1234')")
            let device = try await registrar.texts(
                "SELECT device_id FROM postbell.device_register('berta', 'phone', 'fcm', 'app', 'token-12345', "
                    + "idempotency_key => 'k')")[0]
            for call in [
                "device_list('berta')", "device_get('\(device)')", "device_activate('\(device)')",
                "device_mute('\(device)', '{note}')", "device_test('\(device)')", "device_revoke('\(device)')",
                "device_delete('\(device)')", "devices_import('[]')",
            ] {
                try await registrar.execute("SELECT postbell.\(call)")
            }
            for statement in [
                "SELECT count(*) FROM postbell.devices", "SELECT count(*) FROM postbell.idempotency_keys",
                "SELECT postbell.prune_idempotency_keys(1)", "SELECT postbell.token_fingerprint('token-1234')",
                "SELECT postbell.request_hash('x')", "SELECT postbell.is_served('fcm')",
                "SELECT postbell.store_import('default', '{}', now())",
            ] {
                #expect(await registrar.refusal(statement) == "42501", "\(statement)")
            }
            #expect(await registrar.refusal("SELECT postbell.enqueue('note', 'anna', 'x')") == "42501")
            await registrar.close()
        }
    }

    /// Definer functions pin their search path, end it with pg_temp, and are nobody's but the granted roles'.
    @Test(arguments: DatabaseServer.allCases)
    func `Definer functions are pinned and not public`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let loose = try await outbox.texts(
                """
                SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                WHERE n.nspname = 'postbell' AND ((p.prosecdef AND NOT EXISTS (
                        SELECT 1 FROM unnest(p.proconfig) c WHERE c = 'search_path=pg_catalog, pg_temp'))
                    OR EXISTS (SELECT 1 FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                               WHERE a.grantee = 0))
                """)
            #expect(loose == [])
            let open = try await outbox.texts(
                """
                SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'postbell' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                  AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1
                """)
            let registries = [
                "codes", "hooks", "kinds", "namespaces", "retention", "role_tenants", "schema_migrations", "secrets",
                "settings", "workers",
            ]
            #expect(open == registries)
        }
    }
}
