import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Each fault that the audit looks for is made by hand, and found under every role that may ask.
@Suite(.timeLimit(.minutes(5)))
struct AuditTests {
    /// A fault, and the statements that make it out of three notifications: a queued, b leased, c delivered.
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
        ("not_recovered", "UPDATE postbell.leases SET until = now() - interval '1 h'"),
        ("default_partition", "UPDATE postbell.deliveries SET id = 'ffffffff-ffff-7fff-bfff-ffffffffffff'"),
        ("two_ends", copied(batch: "batch")),
        ("twice_delivered", copied(batch: "gen_random_uuid()")),
        ("device_shape", "UPDATE postbell.devices SET status = 'disabled'"),
    ]

    private static func copied(batch: String) -> String {
        """
        INSERT INTO postbell.deliveries (id, notification_id, batch, device_no, tenant_no, route_no, attempt, outcome,
            final, late)
        SELECT postbell.uuid7(), notification_id, \(batch), device_no, 1, 1, 1, outcome, final, late
        FROM postbell.deliveries
        """
    }

    static let cases = DatabaseServer.allCases.flatMap { server in faults.indices.map { (server, $0) } }

    @Test(arguments: cases)
    func `Each fault is found by whoever may ask`(server: DatabaseServer, index: Int) async throws {
        let (fault, made) = Self.faults[index]
        try await Outbox.on(server, audited: false) { outbox in
            try await outbox.device()
            try await outbox.enqueue("c", "b", "a")
            let worker = try await outbox.worker()
            let done = try await worker.claimed(1)
            _ = try await worker.settle(done.flush(1))
            _ = try await worker.claimed(1)
            #expect(try await outbox.faults() == [])
            try await outbox.run(made)
            #expect(try await outbox.faults().contains(fault), "\(made)")
            for role in ["postbell_dispatcher", "postbell_reader", "postbell_operator", "postbell_owner"] {
                let asking = try await outbox.database.connect(role: role)
                try await asking.execute("SET postbell.tenant_id = 'nobody'")
                let found = try await asking.texts("SELECT fault FROM postbell.audit()")
                #expect(found.contains(fault), "\(role): \(made)")
                await asking.close()
            }
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
