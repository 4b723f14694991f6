import OutboxCore
import Postgres
import Support

@testable import OutboxPostgres

/// A database with tenant `mine`, whose logins are confined to it, and perhaps tenant `other` beside it, which has the
/// same people, devices, keys, subjects and threads: some of them committed, others in transactions that stay open.
struct TenantScene {
    let outbox: Outbox
    let isShared: Bool
    private let logins: [String: PostgresConnection]
    private let open: [PostgresConnection]

    /// Runs `body` with a scene in a database of its own. Without `isShared` there is no other tenant.
    static func on<Value: Sendable>(
        _ server: DatabaseServer, isShared: Bool, _ body: @Sendable (TenantScene) async throws -> Value
    ) async throws -> Value {
        var value: Value?
        try await Outbox.on(server) { outbox in
            let scene = try await TenantScene(outbox, isShared: isShared)
            value = try await body(scene)
            if isShared { try await outbox.run(Self.endOfFaults) }
            for session in scene.open + Array(scene.logins.values) { await session.close() }
            for login in TenantStatements.roles.map(scene.login) + [scene.login("other")] {
                try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
            }
        }
        guard let value else { throw TestSetupError("the scene ended without a value") }
        return value
    }

    private init(_ outbox: Outbox, isShared: Bool) async throws {
        self.outbox = outbox
        self.isShared = isShared
        let suffix = outbox.database.name
        try await outbox.run(Self.probes)
        // the same fingerprints in all databases
        try await outbox.run("UPDATE postbell.secrets SET value = sha256('same')")
        for role in TenantStatements.roles + ["other"] {
            let roles = role == "other" ? TenantStatements.roles.joined(separator: ", ") : role
            try await outbox.run(
                """
                CREATE ROLE \(role)_\(suffix) LOGIN; GRANT \(roles) TO \(role)_\(suffix);
                INSERT INTO postbell.role_tenants VALUES ('\(role)_\(suffix)', '\(role == "other" ? role : "mine")')
                """)
        }
        try await outbox.run(Self.life(of: "mine"))
        if isShared {
            try await outbox.run(Self.life(of: "other"))
            try await outbox.run(Self.tokensOfZoe)
        }
        try await Self.work(in: outbox, tenants: isShared ? [2, 3] : [2])
        if isShared { try await outbox.run(Self.faultsOfOther) }
        open = isShared ? try await Self.openTransactions(in: outbox, login: "other_\(suffix)") : []
        var logins: [String: PostgresConnection] = [:]
        for role in TenantStatements.roles {
            let session = try await outbox.database.connect(login: "\(role)_\(suffix)")
            try await session.execute("SET lock_timeout = '300ms'")
            logins[role] = session
        }
        self.logins = logins
    }

    private func login(_ role: String) -> String { "\(role)_\(outbox.database.name)" }

    /// What the login of a role is answered: rows, or the whole of a refusal; ids and times are left out.
    func answers(to attempt: TenantStatements.Attempt, as role: String) async throws -> [String] {
        guard let session = logins[role] else { throw TestSetupError("no login of \(role)") }
        let sql = "SELECT unnest(probe.run($probe$\(attempt.sql)$probe$, '\(attempt.tenant)', '\(attempt.principal)'))"
        return try await session.texts(sql)
    }

    /// All that a tenant has, without ids and times.
    func possessions(of tenant: String) async throws -> [String] {
        try await outbox.texts("SELECT * FROM probe.possessions('\(tenant)') ORDER BY 1")
    }

    /// Ends the transactions that were open meanwhile, without a trace.
    func rollBack() async throws {
        for session in open { try await session.execute("ROLLBACK") }
    }

    // MARK: The past

    /// The people, devices and notifications of a tenant; only what nobody but it may know is named after it.
    private static func life(of tenant: String) -> String {
        """
        SET postbell.tenant_id = '\(tenant)';
        SELECT postbell.device_register(p, c, 'fcm', 'app.two', md5('\(tenant)' || p || c), name => 'of \(tenant)',
            device_ref => 'ref-' || n, session_ref => 'session-' || n, idempotency_key => 'i' || n)
        FROM unnest('{anna,ben}'::text[]) p, unnest('{phone,tablet}'::text[]) WITH ORDINALITY c(c, n);
        INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, thread, payload)
        SELECT CASE n % 2 WHEN 0 THEN 'anna' ELSE 'ben' END, 'note', 'k' || n, 's' || n % 5, 't' || n % 4,
            '{"word": "\(tenant)"}'
        FROM generate_series(1, 20) n;
        SELECT postbell.supersede('\(tenant)', 's1'), postbell.erase('\(tenant)', 't1');
        SELECT postbell.sync('anna', seen => '{s2}');
        SELECT postbell.acknowledge(probe.notification('\(tenant)', 'k' || n)) FROM generate_series(1, 4) n;
        SELECT postbell.device_mute(probe.device('\(tenant)', 'ben', 'tablet'), '{note}');
        RESET postbell.tenant_id
        """
    }

    /// Tokens that the first tenant will register: they move, whoever has them.
    private static let tokensOfZoe = """
        SET postbell.tenant_id = 'other';
        SELECT postbell.device_register('zoe', 'phone-' || n, 'fcm', 'app.two', 'shared-token-' || n,
            name => 'of other')
        FROM generate_series(1, 9) n;
        SELECT postbell.device_register('zoe', 'phone', 'fcm', 'app.others', 'token-of-zoe', name => 'of other');
        RESET postbell.tenant_id
        """

    /// What an audit finds: one fault of a notification, and one of a device.
    private static let faultsOfOther = """
        INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason)
        SELECT o.id, 1, 2, 'failed', 'ceiling' FROM postbell.outbox o
        WHERE o.tenant_id = 'other' AND o.dedupe_key = 'k3';
        UPDATE postbell.devices SET token_seq = 0 WHERE tenant_id = 'other' AND client_device_id = 'phone-9'
        """

    private static let endOfFaults = """
        DELETE FROM postbell.settlements WHERE tenant_no = 1;
        UPDATE postbell.devices SET token_seq = 1 WHERE tenant_id = 'other' AND client_device_id = 'phone-9'
        """

    /// One lease with rows of each of these tenants; two rows of each are settled, the others stay in flight.
    private static func work(in outbox: Outbox, tenants: [Int32]) async throws {
        let worker = try await outbox.worker()
        let credits = tenants.map { ShareCredit(share: Share(urgency: 0, tenant: $0), rows: 5, mark: .start) }
        let request = ClaimRequest(
            batch: Worker.identifier(), route: 2, crashClass: .clean, credits: credits, lease: .seconds(600),
            targetsPerRow: 100)
        let answer = try await worker.query(ClaimStatement.command(request, owner: worker.owner))
        guard let batch = try ClaimAnswer.batch(answer, of: request), batch.dispatches.count == 5 * tenants.count else {
            throw TestSetupError("the rows were not claimed")
        }
        for tenant in tenants {
            let sent = batch.dispatches.indices.filter {
                batch.dispatches[$0].share.tenant == tenant && !batch.dispatches[$0].targets.isEmpty
            }
            for position in sent.prefix(2) { _ = try await worker.settle(batch.flush(position + 1)) }
        }
        await worker.connection.close()
    }

    /// What the other tenant has begun and not committed: the same keys, people, devices, apps and facts.
    private static func openTransactions(in outbox: Outbox, login: String) async throws -> [PostgresConnection] {
        let session = try await outbox.database.connect(login: login)
        try await session.execute("SET postbell.tenant_id = 'other'; BEGIN")
        for sql in [
            "INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, thread) "
                + "SELECT 'anna', 'note', 'k' || n, 's' || n % 8, 't' || n % 8 FROM generate_series(21, 40) n",
            "SELECT postbell.supersede('other', 's' || n), postbell.erase('other', 't' || n) "
                + "FROM generate_series(1, 8) n",
            "SELECT postbell.device_register("
                + "p, c, 'fcm', a, md5('open' || p || c), idempotency_key => 'i' || 2 * n + m) "
                + "FROM unnest('{anna,ben,cleo}'::text[]) p, "
                + "unnest('{phone,tablet,watch}'::text[]) WITH ORDINALITY c(c, n), "
                + "unnest('{app.new,app.newer}'::text[]) WITH ORDINALITY a(a, m) WHERE (p, c) <> ('anna', 'phone')",
            "SELECT postbell.devices_import('[{\"principal_id\": \"anna\", \"client_device_id\": \"desk\", "
                + "\"provider\": \"fcm\", \"app\": \"app.newest\", \"token\": \"token-of-desk\"}]')",
            "SELECT postbell.device_revoke(principal_id => 'ben', reason => 'logout')",
            "SELECT postbell.sync('ben', seen => '{s3}')",
            "SELECT postbell.cancel(probe.notification('other', 'k' || n)) FROM generate_series(1, 20) n",
            "SELECT postbell.acknowledge(probe.notification('other', 'k' || n)) FROM generate_series(5, 40) n",
            // but not zoe, whose tokens are the exception
            "SELECT postbell.forget(p) FROM unnest('{anna,ben,cleo}'::text[]) p",
        ] { try await session.execute(sql) }
        let founder = try await outbox.database.connect()
        try await founder.execute(
            "BEGIN; SET LOCAL postbell.tenant_id = 'fresh'; SELECT postbell.enqueue('note', 'anna', 'k1'), "
                + "postbell.enqueue('note', 'anna', 'k2'), postbell.forget_tenant('fresh', 1)")
        return [session, founder]
    }
}
