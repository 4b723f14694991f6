import OutboxCore
import OutboxPostgres
import Postgres
import Support

/// A migrated database in which statements of producers, back ends and workers race, each in a role and a session of
/// its own.
struct RaceScene: Sendable {
    let database: TemporaryDatabase
    /// The superuser's session: looks at everything.
    let admin: PostgresConnection

    /// Runs `body` in a database of its own. `damage` is SQL that breaks a rule of the schema on purpose, so that a
    /// test can see the race notice.
    static func on<Value>(
        _ server: DatabaseServer, damage: String, _ body: (RaceScene) async throws -> Value
    ) async throws -> Value {
        try await TemporaryDatabase.migrated(on: server) { database in
            let scene = RaceScene(database: database, admin: try await database.connect())
            try await scene.admin.execute(
                """
                SELECT postbell.define_kind('note', 'template', '{}', '{"title": "Note"}', wait_for_device => '0');
                SELECT postbell.define_kind('patient', 'template', '{}', '{"title": "Note"}',
                    wait_for_device => '1 h');
                INSERT INTO postbell.routes (provider, environment, app)
                VALUES ('apns', 'production', 'app.one'), ('fcm', NULL, 'app.two');
                \(damage)
                """)
            let value = try await body(scene)
            await scene.admin.close()
            return value
        }
    }

    /// A session in one of the schema's roles.
    func connect(_ role: String) async throws -> PostgresConnection {
        try await database.connect(role: role)
    }

    /// A worker's statements, under an owner of its own unless it shares one.
    func worker(owner: Identifier? = nil) async throws -> RaceWorker {
        try await RaceWorker(database, owner: owner)
    }

    /// The first column of a query's rows.
    func texts(_ sql: String) async throws -> [String] {
        let result = try await admin.execute(sql)
        return try (0..<result.rowCount).map { result.isNull($0, 0) ? "" : try result.text($0, 0) }
    }

    /// What the audit finds, from the beginning.
    func audit(into report: inout RaceReport) async throws {
        for fault in try await texts(
            "SELECT fault || ' ' || coalesce(detail, '') FROM postbell.audit('-infinity', '1 h') LIMIT 20")
        {
            report.fail("audit: \(fault)")
        }
    }

    /// Waits, by looking again and again, until `count` sessions of the database wait for a lock; answers whether they
    /// did.
    func awaitLocked(_ count: Int) async throws -> Bool {
        for _ in 0..<2000 {
            if try await admin.query(Self.locked).int8(0, 0) >= Int64(count) { return true }
        }
        return false
    }

    private static let locked = PostgresStatement(
        "locked_sessions",
        """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'
        """)
}

extension PostgresConnection {
    /// Enqueues a notification; its id.
    func enqueue(
        _ kind: String = "note", to principal: String, key: String, more: String = "", begin: Bool = false
    ) async throws -> Identifier {
        let opening = begin ? "BEGIN; " : ""
        let result = try await execute(
            "\(opening)SELECT postbell.enqueue('\(kind)', '\(principal)', '\(key)'\(more.isEmpty ? "" : ", " + more))")
        guard result.rowCount == 1, !result.isNull(0, 0), let made = Identifier(try result.text(0, 0)) else {
            throw TestSetupError("\(key) was not enqueued")
        }
        return made
    }

    /// Registers a device with a token of its own on route 1 (APNs) or 2 (FCM).
    func register(_ client: String, of principal: String, route: RouteNumber, begin: Bool = false) async throws {
        let place = route == 1 ? "'apns', 'app.one'" : "'fcm', 'app.two'"
        try await execute(
            """
            \(begin ? "BEGIN;" : "")
            SELECT postbell.device_register('\(principal)', '\(client)', \(place), md5('\(principal) \(client)')
                \(route == 1 ? ", environment => 'production'" : ""))
            """)
    }

    /// The database's clock.
    func clock() async throws -> Timestamp {
        Timestamp(microseconds: try await query(Self.reading).int8(0, 0))
    }

    private static let reading = PostgresStatement(
        "clock", "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8")
}
