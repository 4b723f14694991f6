import Postgres
import Support
import Testing

/// Sessions that put objects of their own in the way of Postbell's functions.
@Suite(.timeLimit(.minutes(5)))
struct HijackTests {
    /// Functions and operators that Postbell's own use, in a schema that comes first, and tables like its tables among
    /// the temporary ones. Whoever calls one says so.
    private static let trap = #"""
        CREATE SCHEMA trap;
        CREATE FUNCTION trap.spring() RETURNS void LANGUAGE plpgsql AS $f$
            BEGIN RAISE EXCEPTION 'hijacked' USING ERRCODE = 'XX999'; END $f$;
        DO $$
        DECLARE
            made record;
        BEGIN
            FOR made IN
                SELECT DISTINCT p.proname, pg_get_function_identity_arguments(p.oid) AS arguments,
                    format_type(p.prorettype, NULL) AS answer
                FROM pg_proc p
                WHERE p.pronamespace = 'pg_catalog'::regnamespace
                    AND p.proname IN (
                        'lower', 'upper', 'length', 'octet_length', 'clock_timestamp', 'now', 'hashtextextended',
                        'left', 'substr', 'replace', 'jsonb_typeof', 'json_typeof', 'cardinality', 'current_setting',
                        'format', 'md5', 'gen_random_uuid', 'pg_advisory_xact_lock', 'pg_notify')
                    AND p.prokind = 'f'
                    AND '"any"'::regtype <> ALL (p.proargtypes::oid[])
            LOOP
                EXECUTE format('CREATE FUNCTION trap.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$
                    BEGIN PERFORM trap.spring(); END $f$', made.proname, made.arguments, made.answer);
            END LOOP;
        END
        $$;
        CREATE FUNCTION trap.equal(text, text) RETURNS boolean LANGUAGE plpgsql AS $f$
            BEGIN PERFORM trap.spring(); RETURN NULL; END $f$;
        CREATE FUNCTION trap.joined(text, text) RETURNS text LANGUAGE plpgsql AS $f$
            BEGIN PERFORM trap.spring(); RETURN NULL; END $f$;
        CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.equal);
        CREATE OPERATOR trap.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.equal);
        CREATE OPERATOR trap.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.joined);
        GRANT USAGE ON SCHEMA trap TO PUBLIC
        """#
    private static let temporary = """
        CREATE TEMP TABLE outbox (LIKE postbell.routes);
        CREATE TEMP TABLE devices (x int);
        CREATE TEMP TABLE queue (x int);
        CREATE TEMP TABLE kinds (x int);
        CREATE TEMP TABLE settings (x int);
        CREATE TEMP TABLE tenants (x int);
        CREATE TEMP TABLE notifications (x int);
        CREATE TEMP TABLE acknowledgements (x int);
        CREATE TEMP TABLE deliveries (x int);
        CREATE TEMP TABLE events (x int);
        CREATE TEMP TABLE receipts (x int);
        CREATE TEMP TABLE idempotency_keys (x int);
        CREATE TEMP TABLE pg_proc (x int);
        CREATE TEMP TABLE pg_class (x int);
        SET search_path = pg_temp, trap, pg_catalog
        """

    private static let statements = [
        (
            "postbell_producer",
            [
                "INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, thread, payload) "
                    + "VALUES ('anna', 'note', 'a', 's', 't', '{\"word\": \"tea\"}')",
                "SELECT postbell.enqueue('note', 'anna', 'b', '{\"word\": \"tea\"}')",
                "SELECT postbell.enqueue_or_note('note', 'anna', 'c', '{\"word\": 1}')",
                "SELECT postbell.supersede('default', 's')", "SELECT postbell.erase('default', 't')",
                "SELECT postbell.mapping()",
            ]
        ),
        (
            "postbell_registrar",
            [
                "SELECT postbell.device_register('anna', 'watch', 'fcm', 'app', 'token-1234')",
                "SELECT postbell.device_register('cleo', 'watch', 'fcm', 'app', 'token-cleo')",
                "SELECT postbell.device_register('anna', 'phone', 'fcm', 'app', 'token-5678', device_ref => 'r', "
                    + "pending => true, idempotency_key => 'i')",
                "SELECT postbell.device_list('anna')", "SELECT postbell.device_get(pg_catalog.gen_random_uuid())",
                "SELECT postbell.device_activate(device_id) FROM postbell.device_list('anna')",
                "SELECT postbell.device_test(device_id) FROM postbell.device_list('anna', max_rows => 1)",
                "SELECT postbell.device_mute(device_id, '{note}') FROM postbell.device_list('anna')",
                "SELECT postbell.devices_import('[{\"principal_id\": \"ben\", \"client_device_id\": \"phone\", "
                    + "\"provider\": \"fcm\", \"app\": \"app\", \"token\": \"token-9999\"}]')",
                "SELECT postbell.device_revoke(principal_id => 'anna', reason => 'logout')",
                "SELECT postbell.device_delete(device_id) FROM postbell.device_list('ben')",
                "SELECT postbell.sync('anna', seen => '{s}')", "SELECT postbell.mapping()",
                "SELECT postbell.acknowledge(id, 'anna') FROM postbell.inbox('anna')",
                "SELECT devices FROM postbell.inbox('anna', pg_catalog.gen_random_uuid(), 10)",
                "SELECT postbell.forget('cleo')",
            ]
        ),
        (
            "postbell_operator",
            [
                "SELECT count(*) FROM postbell.notifications", "SELECT count(*) FROM postbell.audit()",
                "SELECT postbell.cancel(id) FROM postbell.notifications LIMIT 1",
                "SET postbell.tenant_id = 'empty'; SELECT postbell.forget_tenant('empty')",
                "SELECT postbell.set_retention(t, '30 days') "
                    + "FROM pg_catalog.unnest('{outbox,deliveries,receipts,events}'::text[]) t",
                "SELECT * FROM postbell.retain()", "SELECT postbell.drop_ledger_day()",
            ]
        ),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `Objects in the way of a function are not used`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.trap)
            try await outbox.device()
            for (role, statements) in Self.statements {
                let login = "hijack_\(role)_\(outbox.database.name)"
                try await outbox.run(
                    "CREATE ROLE \(login) LOGIN; GRANT \(role) TO \(login); GRANT SELECT ON postbell.routes TO \(login)"
                )
                let session = try await outbox.database.connect(login: login)
                try await session.execute(Self.temporary)
                #expect(await session.refusal("SELECT lower('A')") == "XX999", "the trap works")
                for statement in statements {
                    #expect(await session.refusal(statement) == nil, "\(role): \(statement)")
                }
                await session.close()
                try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
            }
            #expect(
                try await outbox.texts("SELECT kind FROM postbell.outbox ORDER BY 1") == ["note", "note", "test"])
        }
    }
}
