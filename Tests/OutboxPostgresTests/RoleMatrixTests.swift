import Postgres
import Support
import Testing

/// Every role against what others may do: a cell is allowed only where this table says so.
@Suite(.timeLimit(.minutes(5)))
struct RoleMatrixTests {
    private static let roles = [
        "postbell_producer", "postbell_registrar", "postbell_dispatcher", "postbell_reader", "postbell_operator",
        "nobody",
    ]

    /// A statement, and the roles that may run it; `nobody` is a login without any of them.
    private static let statements: [(sql: String, allowed: Set<String>)] = [
        // producing
        (
            "INSERT INTO postbell.outbox (principal_id, kind, dedupe_key) VALUES ('anna', 'note', 'x')",
            ["postbell_producer"]
        ),
        ("SELECT postbell.enqueue('note', 'anna', 'x')", ["postbell_producer"]),
        ("SELECT postbell.enqueue_or_note('note', 'anna', 'x')", ["postbell_producer"]),
        ("SELECT postbell.supersede('default', 's')", ["postbell_producer"]),
        ("SELECT postbell.erase('default', 't')", ["postbell_producer"]),
        (
            "SELECT postbell.mapping()",
            [
                "postbell_producer", "postbell_registrar", "postbell_dispatcher", "postbell_reader",
                "postbell_operator",
            ]
        ),
        // devices
        ("SELECT postbell.device_register('a', 'b', 'fcm', 'app', 'token-1234')", ["postbell_registrar"]),
        ("SELECT postbell.device_revoke(principal_id => 'a', reason => 'logout')", ["postbell_registrar"]),
        ("SELECT postbell.device_delete(gen_random_uuid())", ["postbell_registrar"]),
        ("SELECT postbell.device_mute(gen_random_uuid(), '{}')", ["postbell_registrar"]),
        ("SELECT postbell.device_activate(gen_random_uuid())", ["postbell_registrar"]),
        ("SELECT postbell.device_get(gen_random_uuid())", ["postbell_registrar"]),
        ("SELECT postbell.device_list('anna')", ["postbell_registrar"]),
        ("SELECT postbell.device_test(gen_random_uuid())", ["postbell_registrar"]),
        ("SELECT postbell.devices_import('[]')", ["postbell_registrar"]),
        ("SELECT postbell.sync('anna')", ["postbell_registrar"]),
        ("SELECT postbell.inbox('anna')", ["postbell_registrar"]),
        ("SELECT postbell.acknowledge(gen_random_uuid())", ["postbell_registrar"]),
        ("SELECT postbell.forget('anna')", ["postbell_registrar"]),
        // dispatching
        ("SELECT * FROM postbell.recover(now(), now(), 1, 1, 1)", ["postbell_dispatcher"]),
        ("SELECT postbell.retry_held('{1}', 1)", ["postbell_dispatcher"]),
        ("SELECT postbell.prune_idempotency_keys(1)", ["postbell_dispatcher"]),
        ("SELECT postbell.device_effects('{}', '{}', '{}', '{}', '{}', 0)", ["postbell_dispatcher"]),
        ("DELETE FROM postbell.queue", ["postbell_dispatcher"]),
        ("DELETE FROM postbell.leases", ["postbell_dispatcher"]),
        ("SELECT ids FROM postbell.leases", ["postbell_dispatcher"]),
        ("SELECT token FROM postbell.devices", ["postbell_dispatcher"]),
        ("SELECT payload FROM postbell.outbox", ["postbell_dispatcher"]),
        // reading
        (
            "SELECT id FROM postbell.outbox",
            ["postbell_producer", "postbell_dispatcher", "postbell_reader", "postbell_operator"]
        ),
        ("SELECT principal_id FROM postbell.outbox", ["postbell_dispatcher", "postbell_reader", "postbell_operator"]),
        ("SELECT * FROM postbell.notifications", ["postbell_reader", "postbell_operator"]),
        ("SELECT * FROM postbell.ledger", ["postbell_reader", "postbell_operator"]),
        (
            "SELECT * FROM postbell.lease_positions", ["postbell_dispatcher", "postbell_reader", "postbell_operator"]
        ),
        ("SELECT * FROM postbell.events", ["postbell_reader", "postbell_operator"]),
        ("SELECT * FROM postbell.acknowledgements", ["postbell_reader", "postbell_operator"]),
        ("SELECT * FROM postbell.audit()", ["postbell_dispatcher", "postbell_reader", "postbell_operator"]),
        // operating
        ("SELECT postbell.cancel(gen_random_uuid())", ["postbell_operator"]),
        ("SELECT postbell.requeue(gen_random_uuid())", ["postbell_operator"]),
        ("SELECT postbell.forget_tenant('default')", ["postbell_operator"]),
        ("SELECT postbell.set_retention('events', '90 days')", ["postbell_operator"]),
        ("SELECT postbell.retain()", ["postbell_dispatcher", "postbell_operator"]),
        ("SELECT postbell.drop_ledger_day()", ["postbell_dispatcher", "postbell_operator"]),
        ("SELECT * FROM postbell.retention", ["postbell_reader", "postbell_operator"]),
        // nobody's but the owner's
        ("UPDATE postbell.retention SET keep = '1 day'", []),
        ("SELECT postbell.retain_outbox(now(), 1)", []),
        ("SELECT postbell.define_kind('x', 'template', '{}', '{\"title\": \"x\"}')", []),
        ("SELECT postbell.drop_kind('note')", []),
        ("SELECT postbell.set_hook('note', 'stale', 'pg_catalog.now()'::regprocedure)", []),
        ("SELECT postbell.assign_namespace('evil', current_user)", []),
        ("SELECT * FROM postbell.secrets", []),
        ("SELECT * FROM postbell.idempotency_keys", []),
        ("SELECT * FROM postbell.device_view", []),
        ("SELECT postbell.take_tokens('{1}', now())", []),
        ("SELECT postbell.device_outcomes(gen_random_uuid())", []),
        ("DELETE FROM postbell.acknowledgements", []),
        ("SELECT postbell.forget_rows('default', NULL, 10)", []),
        ("SELECT postbell.empty_notifications('default', 'anna', 10)", []),
        ("SELECT postbell.remove_notifications('default', 'anna', 10)", []),
        ("INSERT INTO postbell.acknowledgements SELECT now(), gen_random_uuid(), 'default'", []),
        ("SELECT token, payload FROM postbell.devices, postbell.outbox", ["postbell_dispatcher"]),
        ("UPDATE postbell.outbox SET payload = '{}'", []),
        ("DELETE FROM postbell.outbox", []),
        ("UPDATE postbell.deliveries SET outcome = 0", []),
        ("DELETE FROM postbell.deliveries", []),
        ("DELETE FROM postbell.settlements", []),
        ("UPDATE postbell.devices SET token = 'mine'", []),
        ("DELETE FROM postbell.events", []),
        ("UPDATE postbell.settings SET value = 'off'", []),
        ("UPDATE postbell.kinds SET enabled = false", []),
        ("INSERT INTO postbell.role_tenants VALUES (current_user, 'mine')", []),
        ("TRUNCATE postbell.queue", []),
        ("ALTER TABLE postbell.outbox DISABLE ROW LEVEL SECURITY", []),
        ("DROP POLICY owner_all ON postbell.outbox", []),
        ("CREATE TABLE postbell.mine (x int)", []),
        ("CREATE OR REPLACE FUNCTION postbell.session_tenant() RETURNS text LANGUAGE sql AS 'SELECT 1::text'", []),
        ("SET ROLE postbell_owner", []),
        ("SET SESSION AUTHORIZATION postgres", []),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `Each role may do what is its own, and nothing else`(server: DatabaseServer) async throws {
        #expect(Self.roles.count * Self.statements.count >= 60)
        try await Outbox.on(server) { outbox in
            // Logins of their own: whoever takes a role off falls back to one that may nothing.
            for role in Self.roles {
                let login = "matrix_\(role)_\(outbox.database.name)"
                try await outbox.run("CREATE ROLE \(login) LOGIN")
                if role != "nobody" { try await outbox.run("GRANT \(role) TO \(login)") }
                let session = try await outbox.database.connect(login: login)
                for (sql, allowed) in Self.statements {
                    try await session.execute("BEGIN")
                    let refusal = await session.refusal(sql)
                    try await session.execute("ROLLBACK")
                    if allowed.contains(role) {
                        #expect(refusal != "42501", "\(role): \(sql)")
                    } else {
                        #expect(refusal == "42501", "\(role): \(sql)")
                    }
                }
                await session.close()
                try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
            }
        }
    }
}
