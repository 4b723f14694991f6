import EventLoop
import OutboxCore
import OutboxPostgres
import Postgres
import Support

@testable import Simulation

/// PostgreSQL as a conformance run sees it, through the product's own store. Time goes by there when all that is stored
/// is moved into the past.
actor PostgresSubject: StoreSubject {
    private let database: TemporaryDatabase
    private let admin: PostgresConnection
    /// Holds a device's row in an open transaction.
    private let holder: PostgresConnection
    private var workers: [PostgresOutboxStore] = []
    private var batches: [Int: ClaimedBatch] = [:]
    private var keys: [Identifier: String] = [:]
    private var flushes: [Int: Settlement] = [:]
    private var maker = FlushMaker()
    private var claims = 0

    init(_ database: TemporaryDatabase, workers count: Int) async throws {
        self.database = database
        admin = try await database.connect()
        holder = try await database.connect()
        try await admin.execute(
            """
            SELECT postbell.define_kind('note', 'template', '{}', '{"title": "Note"}', wait_for_device => '3 min');
            INSERT INTO postbell.routes (provider, environment, app)
            VALUES ('apns', 'production', 'app.one'), ('fcm', NULL, 'app.two');
            SELECT postbell.tenant_number('default'), postbell.tenant_number('other')
            """)
        for worker in 0..<count {
            var configuration = try database.configuration(role: "postbell_dispatcher", worker: true)
            configuration.settings.append(("application_name", "worker-\(worker)"))
            let store = PostgresOutboxStore(
                configuration, on: DatabaseServer.loop, owner: SimulatedSubject.owner(worker), name: "w\(worker)")
            await store.start()
            workers.append(store)
        }
    }

    func close() async {
        for worker in workers { await worker.stop() }
        await holder.close()
        await admin.close()
    }

    private static let tenants = ["", "default", "other"]

    func perform(_ command: StoreCommand) async throws -> [String] {
        if let answer = try await produce(command) { return answer }
        return try await work(command)
    }

    private func produce(_ command: StoreCommand) async throws -> [String]? {
        switch command {
        case .register(let client, let principal, let tenant, let route, let token):
            let place = route == 1 ? "'apns', 'app.one'" : "'fcm', 'app.two'"
            let environment = route == 1 ? ", environment => 'production'" : ""
            try await run(
                """
                SET postbell.tenant_id = '\(Self.tenants[tenant])';
                SELECT postbell.device_register('\(principal)', '\(client)', \(place),
                    '\(SimulatedSubject.token(token))'\(environment));
                RESET postbell.tenant_id
                """)
        case .revoke(let device):
            try await run("UPDATE postbell.devices SET status = 'revoked' WHERE device_no = \(device)")
        case .mute(let device, let mutes):
            try await run(
                "UPDATE postbell.devices SET muted_kinds = '\(mutes ? "{note}" : "{}")' WHERE device_no = \(device)")
        case .hold(let device):
            try await holder.execute("BEGIN")
            try await holder.execute("SELECT FROM postbell.devices WHERE device_no = \(device) FOR UPDATE")
        case .letGo: try await holder.execute("ROLLBACK")
        case .enqueue(let draft): return try await enqueue(draft)
        case .supersede(let tenant, let subject):
            try await run("SELECT postbell.supersede('\(Self.tenants[tenant])', '\(subject)')")
        case .cancel(let key):
            try await run(
                """
                INSERT INTO postbell.settlements (notification_id, tenant_no, status, reason)
                SELECT id, tenant_no, 'cancelled', 'cancelled' FROM postbell.outbox WHERE dedupe_key = '\(key)'
                """)
        case .advance(let minutes): try await advance(minutes)
        default: return nil
        }
        return []
    }

    private func enqueue(_ draft: SimulatedStore.Draft) async throws -> [String] {
        func device(_ number: Int64?) -> String {
            number.map { "(SELECT id FROM postbell.devices WHERE device_no = \($0))" } ?? "NULL"
        }
        func interval(_ duration: Duration) -> String {
            "clock_timestamp() + interval '\(duration.components.seconds) s'"
        }
        let urgency = draft.urgency == 0 ? "urgent" : "bulk"
        let subject = draft.subject.map { "'\($0)'" } ?? "NULL"
        let delay = draft.delay > .zero ? interval(draft.delay) : "NULL"
        let made = try await rows(
            """
            SELECT postbell.enqueue('note', '\(draft.principal)', '\(draft.key)', subject => \(subject),
                tenant_id => '\(Self.tenants[Int(draft.tenant)])', device_id => \(device(draft.onlyDevice)),
                except_device_id => \(device(draft.exceptDevice)), urgency => '\(urgency)',
                not_before => \(delay), expires_at => \(interval(draft.life)))
            """)
        guard let text = made.first, let identifier = Identifier(text) else { return ["none"] }
        keys[identifier] = draft.key
        return [draft.key]
    }

    private func advance(_ minutes: Int) async throws {
        let columns = [
            "outbox": "created_at,planned_at,not_before,expires_at", "queue": "due_at", "leases": "claimed_at,until",
            "deliveries": "attempted_at,retry_at", "settlements": "at", "supersessions": "at",
            "devices": "token_registered_at,success_due_at,last_success_at",
        ]
        for (table, names) in columns.sorted(by: { $0.key < $1.key }) {
            let changes = names.split(separator: ",").map { "\($0) = \($0) - interval '\(minutes) min'" }
            try await run("UPDATE postbell.\(table) SET \(changes.joined(separator: ", "))")
        }
    }

    private func work(_ command: StoreCommand) async throws -> [String] {
        switch command {
        case .claim(let worker, let route, let crashClass, let rows, let targets, let minutes):
            claims += 1
            let batch = try await workers[worker].claim(
                SimulatedSubject.request(claims, route, crashClass, rows, targets, minutes))
            if let batch { batches[claims] = batch }
            return BatchText.lines(batch, keys: keys) { [now = batch?.claimedAt] in
                SimulatedSubject.minutes(from: now ?? $0, to: $0)
            }
        case .settle(let worker, let number, let fates):
            guard let batch = batches[number] else { return ["no batch"] }
            let flush = maker.flush(batch, fates, keys: keys)
            flushes[worker] = flush
            return BatchText.line(try await workers[worker].settle(flush))
        case .repeatSettle(let worker):
            guard let flush = flushes[worker] else { return ["no flush"] }
            return BatchText.line(try await workers[worker].settle(flush))
        case .renew(let worker, let numbers, let minutes):
            let renewed = try await workers[worker].renew(
                numbers.map(SimulatedSubject.batch), lease: .seconds(minutes * 60))
            return renewed.map { "\($0.low)" }.sorted()
        case .adopt(let worker, let numbers):
            return ["\(try await workers[worker].adopt(numbers.map(SimulatedSubject.batch)))"]
        case .recover(let worker, let isHealthy, let maxCrashes):
            let since = Timestamp(microseconds: isHealthy ? 0 : 4_000_000_000_000_000)
            return BatchText.line(
                try await workers[worker].recover(healthySince: since, limit: 100, maxCrashes: maxCrashes))
        case .recheck(let worker, let number): return try await recheck(worker, number)
        case .effects(let worker, let number, let change, let age, let maxFailures):
            guard let batch = batches[number] else { return ["no batch"] }
            let effects = SimulatedSubject.effects(of: batch, change, asOf: try await now() + .seconds(-age * 60))
            return try await workers[worker].apply(effects, maxFailures: maxFailures).map { "\($0)" }
        case .resolve(let worker): return ["\(try await workers[worker].resolveUnrouted(limit: 100))"]
        case .retryHeld(let worker, let route):
            return ["\(try await workers[worker].retryHeld(on: [route], limit: 1000))"]
        case .waiting(let worker):
            let work = try await workers[worker].waitingWork(on: [1, 2])
            return BatchText.lines(work) { SimulatedSubject.minutes(from: work.now, to: $0) }
        default: return []
        }
    }

    private func recheck(_ worker: Int, _ number: Int) async throws -> [String] {
        guard let batch = batches[number] else { return ["no batch"] }
        do {
            let reasons = try await workers[worker].recheck(
                SimulatedSubject.targets(of: batch), batch: batch.identifier, route: batch.route)
            return SimulatedSubject.lines(reasons, of: batch, keys: keys)
        } catch {
            guard error.kind == .refused else { throw error }
            return ["refused"]
        }
    }

    // MARK: Looking

    func contents() async throws -> [String] {
        try await rows(Self.contents).sorted()
    }

    /// What the audit finds of the conservation law. Of devices it finds more: a run changes them behind the registry.
    func faults() async throws -> [String] {
        try await rows(
            """
            SELECT fault || ' ' || detail FROM postbell.audit('-infinity', '1 day')
            WHERE fault IN (
                'two_places', 'lost', 'lost_route', 'unfinished', 'history_forgotten', 'lease_shape', 'two_ends')
            """)
    }

    private func now() async throws -> Timestamp {
        let text = try await rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return Timestamp(microseconds: Int64(text.first ?? "") ?? 0)
    }

    private func run(_ sql: String) async throws {
        try await admin.execute(sql)
    }

    private func rows(_ sql: String) async throws -> [String] {
        let result = try await admin.execute(sql)
        return try (0..<result.rowCount).filter { !result.isNull($0, 0) }.map { try result.text($0, 0) }
    }

    /// The lines of `SimulatedSubject.contents`.
    private static let contents = """
        WITH m AS (SELECT now() AS t)
        SELECT concat('queue ', o.dedupe_key, '/', q.route_no, ' due ', round(extract(epoch FROM q.due_at - m.t) / 60),
            ' attempt ', q.attempt, ' crashes ', q.crashes, ' prior ', q.prior::text, ' after ', q.after_device,
            ' share ', q.urgency, '.', q.tenant_no)
        FROM m, postbell.queue q JOIN postbell.outbox o ON o.id = q.notification_id
        UNION ALL
        SELECT concat('lease ', ('x' || right(l.batch::text, 8))::bit(32)::int, ' of ',
            ('x' || right(l.owner::text, 8))::bit(32)::int, ' ', o.dedupe_key, '/', l.route_no, ' until ',
            round(extract(epoch FROM l.until - m.t) / 60), ' attempt ', u.attempt, ' crashes ', u.crashes,
            ' after ', u.cursor, ' to ', (
                SELECT string_agg(t.dev::text, ',' ORDER BY t.place)
                FROM unnest(l.t_pos, l.t_dev) WITH ORDINALITY t(pos, dev, place) WHERE t.pos = u.pos))
        FROM m, postbell.leases l, unnest(l.ids, l.attempts, l.crashes, l.cursors)
            WITH ORDINALITY u(id, attempt, crashes, cursor, pos)
        JOIN postbell.outbox o ON o.id = u.id
        WHERE get_bit(l.open, (u.pos - 1)::int) = 1
        UNION ALL
        SELECT concat('ledger ', o.dedupe_key, ' device ', d.device_no, ' batch ',
            ('x' || right(d.batch::text, 8))::bit(32)::int, ' ', postbell.outcome_name(d.outcome),
            ' final ', d.final::text, ' late ', d.late::text, ' retry ',
            coalesce(round(extract(epoch FROM d.retry_at - m.t) / 60)::text, '-'), ' attempt ', d.attempt,
            ' status ', coalesce(d.provider_status, 0), ' ', d.reason, ' token ', coalesce(d.token_seq::text, '-'))
        FROM m, postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
        UNION ALL
        SELECT concat('end ', o.dedupe_key, ' route ', coalesce(s.route_no::text, '-'), ' ', s.status, ' ', s.reason)
        FROM postbell.settlements s JOIN postbell.outbox o ON o.id = s.notification_id
        UNION ALL
        SELECT concat('device ', d.device_no, ' route ', d.route_no, ' ', d.status, ' ',
            coalesce(d.disabled_reason, '-'), ' failures ', d.failure_count, ' token ', d.token_seq, ' ',
            coalesce(d.token, '-'), ' due ', CASE WHEN d.success_due_at = '-infinity' THEN 'at once'
                ELSE round(extract(epoch FROM d.success_due_at - m.t) / 60)::text END)
        FROM m, postbell.devices d
        UNION ALL
        SELECT concat('event ', e.key) FROM postbell.events e
        """
}
