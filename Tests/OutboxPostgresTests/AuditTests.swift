import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Each fault that the audit looks for is made by hand, and found under every role that may ask.
@Suite(.timeLimit(.minutes(5)))
struct AuditTests {
    /// A fault, and the statements that make it out of three notifications of subject s and thread t: a queued, b
    /// leased, c delivered.
    static let faults: [(fault: String, made: String)] = [
        (
            "two_places",
            "INSERT INTO postbell.queue SELECT now(), id, 0, 1, 1, 0, 0, 0, true FROM postbell.outbox "
                + "WHERE dedupe_key = 'b'"
        ),
        ("orphan", "DELETE FROM postbell.outbox WHERE dedupe_key = 'a'"),
        ("lost", "DELETE FROM postbell.queue"),
        ("lost", "DELETE FROM postbell.leases"),
        ("lost", "DELETE FROM postbell.deliveries"),
        ("lost_route", "UPDATE postbell.outbox SET routes = '{1,2}' WHERE dedupe_key = 'c'"),
        ("unfinished", "UPDATE postbell.deliveries SET final = false"),
        (
            "history_forgotten",
            "UPDATE postbell.deliveries SET notification_id = (SELECT notification_id FROM postbell.queue)"
        ),
        ("lease_shape", "UPDATE postbell.leases SET urgencies = '{}'"),
        ("lease_shape", "UPDATE postbell.leases SET open = B'0'"),
        ("lease_shape", "UPDATE postbell.leases SET t_pos = '{9}'"),
        ("not_recovered", "UPDATE postbell.leases SET until = now() - interval '1 h'"),
        ("foreign_tenant", "UPDATE postbell.queue SET tenant_no = 99"),
        ("foreign_tenant", "UPDATE postbell.leases SET tenants = '{99}'"),
        ("foreign_tenant", "UPDATE postbell.deliveries SET tenant_no = 99"),
        ("foreign_tenant", settled(tenant: 99)),
        // The ledger
        ("default_partition", "UPDATE postbell.deliveries SET id = 'ffffffff-ffff-7fff-bfff-ffffffffffff'"),
        ("ledger_orphan", "DELETE FROM postbell.outbox WHERE dedupe_key = 'c'"),
        ("foreign_device", "UPDATE postbell.devices SET principal_id = 'berta'"),
        ("foreign_device", "UPDATE postbell.devices SET tenant_id = 'other'"),
        ("ledger_shape", "UPDATE postbell.deliveries SET outcome = 8"),
        ("ledger_shape", "UPDATE postbell.deliveries SET final = false"),
        ("ledger_shape", "UPDATE postbell.deliveries SET provider_status = 410"),
        ("ledger_shape", "UPDATE postbell.deliveries SET outcome = 5"),
        ("ledger_shape", "UPDATE postbell.deliveries SET outcome = 7, reason = 'muted'"),
        ("ledger_shape", "UPDATE postbell.deliveries SET outcome = 7, provider_status = NULL, reason = 'whim'"),
        ("ledger_shape", "UPDATE postbell.deliveries SET retry_at = now()"),
        ("ledger_shape", "UPDATE postbell.deliveries SET answer_us = -1"),
        ("ledger_time", "UPDATE postbell.deliveries SET attempted_at = now() - interval '2 days'"),
        ("ledger_time", "UPDATE postbell.deliveries SET attempted_at = now() + interval '2 days'"),
        ("two_ends", copied("batch")),
        ("two_ends", copied("gen_random_uuid()")),
        ("sent_after_end", copied("gen_random_uuid()", outcome: "3", final: false, after: "1.1 s")),
        ("twice_delivered", copied("gen_random_uuid()")),
        ("unknown_beside_known", copied("batch", outcome: "6", final: false, reason: "lease_lost")),
        ("sent_late", "UPDATE postbell.outbox SET expires_at = created_at - interval '1 s'"),
        ("sent_though_over", "\(lateSend); \(fact("supersessions", "subject", "s"))"),
        ("sent_though_over", "\(lateSend); \(fact("erasures", "thread", "t"))"),
        ("sent_though_over", "\(lateSend); INSERT INTO postbell.receipts SELECT now(), 'default', 'anna', 's'"),
        ("sent_though_over", "\(lateSend); \(settled(route: "NULL", status: "cancelled", reason: "cancelled"))"),
        (
            "over_ceiling",
            "UPDATE postbell.deliveries SET outcome = 3, final = false; "
                + copied("gen_random_uuid()", outcome: "6", final: false) + "; "
                + copied("gen_random_uuid()", outcome: "3", final: false)
        ),
        // Ends, devices, events
        ("settlement_shape", settled(status: "lost")),
        ("settlement_shape", settled(reason: "whim")),
        ("settlement_shape", settled(route: "NULL", status: "failed")),
        ("device_shape", "UPDATE postbell.devices SET status = 'disabled'"),
        ("device_shape", "UPDATE postbell.devices SET status = 'revoked'"),
        ("device_shape", "UPDATE postbell.devices SET token_seq = 0"),
        ("device_shape", "UPDATE postbell.devices SET token_registered_at = NULL"),
        (
            "token_twice",
            """
            SELECT postbell.device_register('anna', 'tablet', 'apns', 'app.one', repeat('ab', 16), 'production');
            DROP INDEX postbell.devices_token; UPDATE postbell.devices SET token = repeat('ab', 16)
            """
        ),
        ("effect_without_cause", cleared("token_invalid")),
        ("effect_without_cause", cleared("repeated_failures")),
        ("effect_without_cause", "UPDATE postbell.deliveries SET outcome = 2"),
        ("event_twice", event("notification.cancelled", key: "1") + "; " + event("notification.cancelled", key: "2")),
        ("event_key", "UPDATE postbell.events SET key = 'x'"),
    ]

    private static let lateSend =
        "UPDATE postbell.deliveries SET attempted_at = attempted_at + interval '6 min'"

    private static func copied(
        _ batch: String, outcome: String = "outcome", final: Bool = true, reason: String = "x", after: String = "0"
    ) -> String {
        """
        INSERT INTO postbell.deliveries (id, notification_id, batch, device_no, tenant_no, route_no, attempt, outcome,
            final, late, reason, attempted_at, answer_us)
        SELECT postbell.uuid7(), notification_id, \(batch), device_no, 1, 1, 1, \(outcome), \(final), late, '\(reason)',
            attempted_at + interval '\(after)', answer_us
        FROM postbell.deliveries ORDER BY id LIMIT 1
        """
    }

    private static func fact(_ table: String, _ column: String, _ value: String) -> String {
        "INSERT INTO postbell.\(table) (id, at, tenant_id, \(column)) "
            + "SELECT gen_random_uuid(), now(), 'default', '\(value)'"
    }

    private static func settled(
        tenant: Int = 1, route: String = "1", status: String = "failed", reason: String = "ceiling"
    ) -> String {
        "INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason) "
            + "SELECT id, \(tenant), \(route), '\(status)', '\(reason)' FROM postbell.outbox WHERE dedupe_key = 'c'"
    }

    private static func event(_ name: String, key: String) -> String {
        """
        INSERT INTO postbell.events (id, at, tenant_id, name, key, device_id, detail)
        SELECT gen_random_uuid(), now(), 'default', '\(name)', '\(name):\(key)', d.id,
            jsonb_build_object('notification_id', o.id, 'reason', '\(key)')
        FROM postbell.devices d, postbell.outbox o WHERE o.dedupe_key = 'c'
        """
    }

    private static func cleared(_ reason: String) -> String {
        event("device.push_token_invalidated", key: reason)
    }

    static let roles = ["postbell_dispatcher", "postbell_reader", "postbell_operator", "postbell_owner"]

    /// Each is made in a transaction of its own, which is rolled back.
    @Test(arguments: DatabaseServer.allCases)
    func `Each fault is found by whoever may ask`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SELECT postbell.define_kind('note', 'template', '{}', '{"title": "x"}', retry => '30s',
                    ends_when_seen => true)
                """)
            try await outbox.device()
            try await outbox.enqueue("c", "b", "a", more: "subject => 's', thread => 't'")
            let worker = try await outbox.worker()
            let done = try await worker.claimed(1)
            _ = try await worker.settle(done.flush(1))
            _ = try await worker.apply(done.effect(.succeeded))
            _ = try await worker.claimed(1)
            #expect(try await outbox.faults() == [])
            for (fault, made) in Self.faults {
                try await outbox.run("BEGIN; \(made)")
                for role in Self.roles {
                    try await outbox.run("SET LOCAL ROLE \(role); SET LOCAL postbell.tenant_id = 'nobody'")
                    let found = try await outbox.texts("SELECT fault FROM postbell.audit()")
                    #expect(found.contains(fault), "\(role): \(made)")
                    try await outbox.run("RESET ROLE")
                }
                try await outbox.run("ROLLBACK")
            }
            for role in ["postbell_producer", "postbell_registrar"] {
                let other = try await outbox.database.connect(role: role)
                #expect(await other.refusal("SELECT * FROM postbell.audit()") == "42501")
                await other.close()
            }
        }
    }

    /// Every fault that the audit can name is made above.
    @Test(arguments: DatabaseServer.allCases)
    func `No fault is looked for without a test`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let named = try await outbox.texts(
                """
                SELECT DISTINCT m[1] FROM pg_proc p, regexp_matches(p.prosrc, 'SELECT\\s+''([a-z_]+)'', ', 'g') m
                WHERE p.pronamespace = 'postbell'::regnamespace AND p.proname LIKE 'audit\\_%' ORDER BY 1
                """)
            #expect(Set(named) == Set(Self.faults.map(\.fault)))
        }
    }

    /// M13: one snapshot, never vacuously clean, and not quadratic in a worker's pinned session.
    @Test(arguments: DatabaseServer.allCases)
    func `The audit is one snapshot and says how much it looked at`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            #expect(try await outbox.value("SELECT provolatile FROM pg_proc WHERE proname = 'audit'") == "s")
            try await outbox.device()
            try await outbox.run("SELECT postbell.enqueue('note', 'anna', 'k' || n) FROM generate_series(1, 5000) n")
            let worker = try await outbox.worker()
            _ = try await worker.claimed(1000)
            #expect(
                try await worker.connection.texts(
                    """
                    SELECT concat_ws(' ', (SELECT count(*) FROM postbell.audit()), s.notifications, s.queued, s.leased,
                        s.devices)
                    FROM postbell.audit_scope() s
                    """) == ["0 5000 4000 1000 1"])
        }
    }

    // MARK: Status

    /// Ends and ledger rows, and the status that follows: a whole end first, then open work, then the worst dispatch.
    static let statuses: [(given: String, status: String)] = [
        ("", "pending"),
        ("end:1:failed:ceiling", "pending"),
        ("end:1:failed:ceiling end:2:dispatched:no_device", "failed ceiling"),
        ("end:1:expired:expired end:2:failed:rejected", "failed rejected"),
        ("end:1:expired:expired row:2:0", "expired expired"),
        ("row:1:0 row:2:0", "dispatched"),
        ("row:1:1 row:2:0", "dispatched"),
        ("row:1:2 row:2:0", "failed rejected"),
        ("row:1:7:expired row:2:0", "expired expired"),
        ("row:1:7:token_changed row:2:0", "dispatched"),
        ("row:1:7:superseded row:2:0", "superseded superseded"),
        ("end:1:dispatched:muted end:2:dispatched:muted", "dispatched muted"),
        ("whole:superseded", "superseded superseded"),
        ("end:1:failed:ceiling whole:cancelled", "cancelled cancelled"),
        ("whole:cancelled whole:superseded", "cancelled cancelled"),
        ("unknown-then-late:1:0 row:2:0", "dispatched"),
        ("row:1:6 row:2:0", "failed unknown"),
    ]

    static let statusCases = DatabaseServer.allCases.flatMap { server in statuses.indices.map { (server, $0) } }

    @Test(arguments: statusCases)
    func `The status follows from ends and ledger`(server: DatabaseServer, index: Int) async throws {
        let (given, status) = Self.statuses[index]
        try await Outbox.on(server, audited: false) { outbox in
            try await outbox.device()
            try await outbox.device("tablet", route: 2)
            let notification = try await outbox.enqueue("a")[0]
            for fact in given.split(separator: " ") { try await outbox.apply(String(fact), to: notification) }
            #expect(
                try await outbox.value("SELECT concat_ws(' ', status, reason) FROM postbell.notifications") == status)
        }
    }
}

extension Outbox {
    /// `end:route:status:reason`, `whole:status`, `row:route:outcome[:reason]`, `unknown-then-late:route:outcome`.
    fileprivate func apply(_ fact: String, to notification: String) async throws {
        let parts = fact.split(separator: ":").map(String.init)
        switch parts[0] {
        case "end":
            try await run(
                """
                INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason)
                VALUES ('\(notification)', 1, \(parts[1]), '\(parts[2])', '\(parts[3])');
                DELETE FROM postbell.queue WHERE route_no = \(parts[1])
                """)
        case "whole":
            try await run(
                "INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason) "
                    + "VALUES ('\(notification)', 1, '\(parts[1])', '\(parts[1])')")
        case "row":
            let reason = parts.count > 3 ? "'\(parts[3])'" : "NULL"
            try await row(notification, parts[1], parts[2], reason: reason)
        default:
            try await row(notification, parts[1], "6", reason: "NULL")
            try await row(notification, parts[1], parts[2], reason: "NULL", late: true)
        }
    }

    private func row(
        _ notification: String, _ route: String, _ outcome: String, reason: String, late: Bool = false
    ) async throws {
        try await run(
            """
            INSERT INTO postbell.deliveries (id, notification_id, batch, device_no, tenant_no, route_no, attempt,
                outcome, final, late, reason)
            VALUES (postbell.uuid7(), '\(notification)', '00000000-0000-0000-0000-00000000000\(route)', \(route), 1,
                \(route), 1, \(outcome), true, \(late), \(reason));
            DELETE FROM postbell.queue WHERE route_no = \(route)
            """)
    }
}
