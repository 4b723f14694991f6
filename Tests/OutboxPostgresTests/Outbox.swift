import OutboxCore
import Postgres
import Support

@testable import OutboxPostgres

/// A migrated database with a kind, and what tests do to it as producer, back end and reader.
struct Outbox: Sendable {
    let database: TemporaryDatabase
    /// The superuser's session: looks at everything.
    let admin: PostgresConnection

    /// Runs `body` in a database of its own. Whatever it did, the audit must be clean at its end unless `audited` is
    /// false.
    static func on(
        _ server: DatabaseServer, audited: Bool = true, _ body: (Outbox) async throws -> Void
    ) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            let outbox = Outbox(database: database, admin: try await database.connect())
            try await outbox.run(
                """
                SELECT postbell.define_kind('note', 'template', '{"word": "slug?"}', '{"title": "Note"}',
                    wait_for_device => '0');
                INSERT INTO postbell.routes (provider, environment, app)
                VALUES ('apns', 'production', 'app.one'), ('fcm', NULL, 'app.two')
                """)
            try await body(outbox)
            if audited {
                let faults = try await outbox.texts("SELECT fault || ' ' || detail FROM postbell.audit()")
                guard faults.isEmpty else { throw TestSetupError("the audit found \(faults)") }
            }
            await outbox.admin.close()
        }
    }

    /// Statements of the superuser.
    func run(_ sql: String) async throws {
        try await admin.execute(sql)
    }

    /// The first column of the rows of a query.
    func texts(_ sql: String) async throws -> [String] {
        try await admin.texts(sql)
    }

    /// The single value of a query.
    func value(_ sql: String) async throws -> String {
        let values = try await texts(sql)
        guard let first = values.first, values.count == 1 else {
            throw TestSetupError("\(values.count) rows instead of one: \(sql)")
        }
        return first
    }

    /// Registers a device with a token of its own; APNs route 1 unless said otherwise.
    func device(
        _ client: String = "phone", of principal: String = "anna", route: RouteNumber = 1, tenant: String = "default"
    ) async throws {
        try await run(
            """
            SET postbell.tenant_id = '\(tenant)';
            \(Self.registration(client, of: principal, route: route, tenant: tenant));
            RESET postbell.tenant_id
            """)
    }

    /// The statement that registers such a device.
    static func registration(
        _ client: String = "phone", of principal: String = "anna", route: RouteNumber = 1, tenant: String = "default"
    ) -> String {
        let place = route == 1 ? "'apns', 'app.one'" : "'fcm', 'app.two'"
        let environment = route == 1 ? ", environment => 'production'" : ""
        return "SELECT postbell.device_register('\(principal)', '\(client)', \(place),"
            + " md5('\(tenant) \(principal) \(client)')\(environment))"
    }

    /// Enqueues notes for a principal, one per key, in this order; answers their ids.
    @discardableResult
    func enqueue(_ keys: String..., to principal: String = "anna", more: String = "") async throws -> [String] {
        var identifiers: [String] = []
        for key in keys {
            identifiers += try await texts(
                "SELECT postbell.enqueue('note', '\(principal)', '\(key)'\(more.isEmpty ? "" : ", " + more))")
        }
        return identifiers
    }

    /// Where notifications are, by dedupe key: `queue`, `lease`, or the status they ended with.
    func places() async throws -> [String] {
        try await texts(
            """
            SELECT dedupe_key || ' ' || coalesce(place, status || coalesce(' ' || reason, ''))
            FROM postbell.notifications ORDER BY dedupe_key
            """)
    }

    /// The ledger: key, device, outcome and marks.
    func ledger() async throws -> [String] {
        try await texts(
            """
            SELECT concat_ws(' ', o.dedupe_key, d.device_no, postbell.outcome_name(d.outcome),
                CASE WHEN d.final THEN 'final' END, CASE WHEN d.late THEN 'late' END)
            FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
            ORDER BY o.dedupe_key, d.device_no, d.late, d.id
            """)
    }

    /// What the audit finds, looking from the beginning and without patience.
    func faults() async throws -> [String] {
        try await texts("SELECT DISTINCT fault FROM postbell.audit('-infinity', '0') ORDER BY 1")
    }

    /// Registers `count` devices of one person, or of one person each, in one import: `device-0001` and so on.
    func importDevices(count: Int, of principal: String = "'anna'") async throws {
        try await run(
            """
            SELECT postbell.devices_import(jsonb_agg(jsonb_build_object('principal_id', \(principal),
                'client_device_id', 'device-' || lpad(n::text, 4, '0'), 'provider', 'fcm', 'app', 'app.two',
                'token', 'token-number-' || n)))
            FROM generate_series(1, \(count)) n
            """)
    }

    /// What `body` reads of a table in a transaction of the superuser's session: rows of a walk through it, and rows
    /// found by an index, dead ones among them.
    func reading(
        of tables: String..., body: () async throws -> Void
    ) async throws -> [String: (walked: Int, fetched: Int)] {
        // What is not reported yet of earlier transactions would be counted too.
        try await run("SELECT pg_stat_force_next_flush()")
        try await run("BEGIN")
        try await body()
        var read: [String: (walked: Int, fetched: Int)] = [:]
        for table in tables {
            let counts = try await texts(
                "SELECT unnest(ARRAY[seq_tup_read, idx_tup_fetch]) FROM pg_stat_xact_user_tables "
                    + "WHERE relid = 'postbell.\(table)'::regclass")
            read[table] = (Int(counts[0]) ?? -1, Int(counts[1]) ?? -1)
        }
        try await run("COMMIT")
        return read
    }

    /// A worker in the dispatcher's role, with a session of its own.
    func worker() async throws -> Worker {
        try await Worker(connection: database.connect(role: "postbell_dispatcher", worker: true))
    }
}

extension PostgresConnection {
    /// The first column of the rows of a query, as text; null is `null`.
    func texts(_ sql: String) async throws -> [String] {
        let result = try await execute(sql)
        return try (0..<result.rowCount).map { result.isNull($0, 0) ? "null" : try result.text($0, 0) }
    }

    /// What `sql` answers, or the SQLSTATE that it is refused with; and the words of the refusal.
    func said(_ sql: String) async -> (answer: [String], message: String) {
        do {
            return (try await texts(sql), "")
        } catch let error as PostgresError {
            return ([error.sqlState?.code ?? "\(error.kind)"], "\(error)")
        } catch {
            return (["\(error)"], "")
        }
    }

    /// The SQLSTATE that `sql` is refused with; nil when it is not refused.
    func refusal(_ sql: String) async -> String? {
        do {
            try await execute(sql)
            return nil
        } catch {
            return error.sqlState?.code ?? "\(error.kind)"
        }
    }
}
