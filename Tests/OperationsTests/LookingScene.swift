import Foundation
import OutboxCore
import OutboxPostgres
import Postgres
import Support

/// A migrated database in which a real store claims and settles, and logins that may look at it, or may not.
struct LookingScene {
    let database: TemporaryDatabase
    let admin: PostgresConnection
    let store: PostgresOutboxStore
    /// The store's name for its leases.
    let owner: Identifier

    /// Logins of the whole server: made once and left to it.
    static let reader = "look_reader"
    static let producer = "look_producer"

    /// Runs `body` in a database of its own, with a kind `note`, a route of APNs (1) and one of FCM (2), and a store
    /// that is registered as a worker of route 1 by the name of `tester/1`.
    static func on(_ server: DatabaseServer, _ body: (LookingScene) async throws -> Void) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            let admin = try await database.connect()
            var random = SystemRandomNumberGenerator()
            let owner = Identifier.random(using: &random)
            let store = try PostgresOutboxStore(
                database.configuration(role: "postbell_dispatcher", worker: true), on: DatabaseServer.loop,
                owner: owner, name: "tester/1")
            await store.start()
            let scene = LookingScene(database: database, admin: admin, store: store, owner: owner)
            let outcome: Result<Void, any Error>
            do {
                try await scene.prepare()
                outcome = .success(try await body(scene))
            } catch {
                outcome = .failure(error)
            }
            await store.stop()
            await admin.close()
            try outcome.get()
        }
    }

    private func prepare() async throws {
        for (login, role) in [(Self.reader, "postbell_reader"), (Self.producer, "postbell_producer")] {
            try await run(
                """
                DO $$ BEGIN
                    CREATE ROLE \(login) LOGIN IN ROLE \(role);
                EXCEPTION WHEN duplicate_object OR unique_violation THEN
                    NULL;
                END $$
                """)
        }
        try await run(
            """
            SELECT postbell.define_kind('note', 'template', '{"word": "slug?"}', '{"title": "Note"}');
            INSERT INTO postbell.routes (provider, environment, app)
            VALUES ('apns', 'production', 'app.one'), ('fcm', NULL, 'app.two')
            """)
        try await heartbeat()
    }

    // MARK: Producer and back end

    /// Executes SQL as the superuser.
    func run(_ sql: String) async throws {
        try await admin.execute(sql)
    }

    /// The single value of a query, as text.
    func value(_ sql: String) async throws -> String {
        let result = try await admin.execute(sql)
        guard result.rowCount == 1 else { throw TestSetupError("\(result.rowCount) rows: \(sql)") }
        return result.isNull(0, 0) ? "null" : try result.text(0, 0)
    }

    /// Registers a device on route 1, or on route 2; answers its id.
    @discardableResult
    func device(
        _ principal: String = "anna", client: String = "phone", name: String = "Phone", route: RouteNumber = 1,
        tenant: String = "default"
    ) async throws -> String {
        let place = route == 1 ? "'apns', 'app.one'" : "'fcm', 'app.two'"
        let environment = route == 1 ? ", environment => 'production'" : ""
        try await run(
            """
            SET postbell.tenant_id = '\(tenant)';
            SELECT postbell.device_register('\(principal)', '\(client)', \(place),
                md5('\(tenant) \(principal) \(client)')\(environment), name => \(Self.literal(name)));
            RESET postbell.tenant_id
            """)
        return try await value(
            """
            SELECT id FROM postbell.devices WHERE tenant_id = '\(tenant)' AND principal_id = '\(principal)'
                AND client_device_id = '\(client)'
            """)
    }

    /// Enqueues a note; answers its id. `more` are further named arguments.
    @discardableResult
    func enqueue(_ key: String, to principal: String = "anna", more: String = "") async throws -> String {
        try await value(
            "SELECT postbell.enqueue('note', '\(principal)', \(Self.literal(key))\(more.isEmpty ? "" : ", " + more))")
    }

    private static func literal(_ text: String) -> String {
        "E'"
            + text.unicodeScalars.map { scalar in
                scalar.isASCII && scalar.properties.isAlphabetic ? String(scalar) : "\\U" + hex(scalar.value)
            }.joined() + "'"
    }

    private static func hex(_ value: UInt32) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    // MARK: Worker

    /// The store registers, or registers again, with one lane that serves route 1.
    func heartbeat(
        _ condition: LaneReport.Condition = .up, reason: String? = nil, since: Duration? = nil, until: Duration? = nil,
        routes: [RouteNumber] = [1], hook: String? = nil
    ) async throws {
        let now = try await store.waitingWork(on: []).now
        let lane = LaneReport(
            name: "apns/production/default", condition: condition, reason: reason, since: since.map { now + $0 },
            until: until.map { now + $0 }, routes: routes)
        let hooks = hook.map {
            HookReport(kind: "note", reason: $0, since: now + .seconds(-60), until: now + .seconds(5))
        }
        _ = try await store.register(lanes: [lane], hooks: hooks.map { [$0] } ?? [], version: "1.0")
    }

    /// Claims all that is due on a route in the default tenant; there must be something.
    @discardableResult
    func claim(route: RouteNumber = 1, lease: Duration = .seconds(30)) async throws -> ClaimedBatch {
        let shares = try await store.waitingWork(on: [route]).shares
        guard let first = shares.first else { throw TestSetupError("nothing is due") }
        var random = SystemRandomNumberGenerator()
        let request = ClaimRequest(
            batch: .random(using: &random), route: route, crashClass: first.crashClass,
            credits: shares.map { ShareCredit(share: $0.share, rows: 100, mark: .start) }, lease: lease,
            targetsPerRow: 100)
        guard let batch = try await store.claim(request) else { throw TestSetupError("the claim found nothing") }
        return batch
    }

    /// Settles every target of a batch with one outcome: final, or again after a wait.
    func settle(_ batch: ClaimedBatch, _ outcome: Outcome, again: Duration? = nil) async throws {
        var random = SystemRandomNumberGenerator()
        var settlement = Settlement(batch: batch.identifier, route: batch.route, positions: batch.dispatches.count)
        for (index, dispatch) in batch.dispatches.enumerated() {
            let position = Int16(index + 1)
            settlement.leaving.append(position)
            for target in batch.targets[dispatch.targets] {
                settlement.ledger.append(
                    LedgerRow(
                        identifier: .timeOrdered(at: batch.claimedAt, using: &random),
                        notification: dispatch.notification, tenant: dispatch.share.tenant, device: target.device,
                        tokenSequence: target.tokenSequence, attempt: dispatch.attempt, position: position,
                        outcome: outcome,
                        isFinal: again == nil, retryAfter: again, attemptedAt: batch.claimedAt,
                        answeredAt: outcome.kind == .unknown ? nil : batch.claimedAt + .milliseconds(42)))
            }
            if let again {
                settlement.returns.append(
                    QueueReturn(
                        position: position, delay: again, attempt: dispatch.attempt, cursor: .start, clearsCrashes: true
                    ))
            }
        }
        _ = try await store.settle(settlement)
    }

    /// Recovers what has lapsed, as a worker does that was there all the time.
    func recover() async throws {
        let now = try await store.waitingWork(on: []).now
        _ = try await store.recover(
            knownAt: now, healthySince: Timestamp(microseconds: 0), limit: 10, maxCrashes: 5)
    }

    /// Claims all that is due on route 1 and settles it with one outcome.
    func attempt(_ outcome: Outcome, again: Duration? = nil) async throws {
        try await settle(claim(), outcome, again: again)
    }

    // MARK: The program

    /// Runs the program as a login.
    func postbell(_ arguments: String..., as login: String = reader) throws -> Program.Result {
        try Program.run(arguments, environment: environment(login))
    }

    /// The environment of a login.
    func environment(_ login: String = reader) throws -> [String: String] {
        ["DATABASE_URL": "\(try database.connectionString) user=\(login)"]
    }

    /// What the program prints with `--json`, read by a parser that is not ours.
    func json(_ arguments: String..., status: Int32 = 0) throws -> [String: Any] {
        let result = try Program.run(arguments + ["--json"], environment: environment())
        guard result.status == status, result.errors.isEmpty,
            let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        else { throw TestSetupError("status \(result.status): \(result.errors)\(result.output)") }
        return object
    }
}
