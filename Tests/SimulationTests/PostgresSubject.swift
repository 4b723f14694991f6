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
            DELETE FROM postbell.kinds;  -- the one of the schema: numbers begin with these
            ALTER TABLE postbell.kinds ALTER kind_no RESTART;
            SELECT postbell.define_kind(name, 'template', '{"word": "slug?"}', '{"title": "Note"}',
                wait_for_device => '3 min', ends_when_seen => name = 'reminder')
            FROM unnest('{note,reminder,guarded}'::text[]) WITH ORDINALITY k(name, place) ORDER BY place;
            INSERT INTO postbell.routes (provider, environment, app)
            VALUES ('apns', 'production', 'app.one'), ('fcm', NULL, 'app.two');
            SELECT postbell.tenant_number('default'), postbell.tenant_number('other')
            """)
        try await admin.execute(HookedAppSchema.sql)
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
    private static let kinds = ["", "note", "reminder", "guarded"]

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
            let kinds = mutes ? "{note,reminder,guarded}" : "{}"
            try await run("UPDATE postbell.devices SET muted_kinds = '\(kinds)' WHERE device_no = \(device)")
        case .hold(let device):
            try await holder.execute("BEGIN")
            try await holder.execute("SELECT FROM postbell.devices WHERE device_no = \(device) FOR UPDATE")
        case .holdRows(let key):
            guard let identifier = try await identifier(key) else { return [] }
            try await holder.execute("BEGIN")
            try await holder.execute("SELECT FROM postbell.queue WHERE notification_id = '\(identifier)' FOR UPDATE")
        case .letGo: try await holder.execute("ROLLBACK")
        case .enqueue(let draft): return try await enqueue(draft)
        case .supersede(let tenant, let subject):
            try await run("SELECT postbell.supersede('\(Self.tenants[tenant])', '\(subject)')")
        case .advance(let minutes): try await advance(minutes)
        case .erase(let tenant, let thread):
            try await run("SELECT postbell.erase('\(Self.tenants[tenant])', '\(thread)')")
        case .setHook(let purpose, let isSet):
            let function = isSet ? "'app.\(purpose.rawValue)'::regproc" : "NULL"
            try await run("SELECT postbell.set_hook('guarded', '\(purpose.rawValue)', \(function))")
        case .app(let over, let barred, let raises, let mixesUp):
            let values = [over, barred, raises?.rawValue, mixesUp?.rawValue].map { $0.map { "'\($0)'" } ?? "NULL" }
            try await run("UPDATE app.state SET (over, barred, raises, mixes_up) = (\(values.joined(separator: ", ")))")
        default: return try await answer(command)
        }
        return []
    }

    /// What people are answered, or refused.
    private func answer(_ command: StoreCommand) async throws -> [String]? {
        switch command {
        case .cancel(let key):
            guard let identifier = try await identifier(key) else { return [] }
            return try await rows("SELECT postbell.cancel('\(identifier)')::text")
        case .see(let tenant, let principal, let subject):
            try await run("SET postbell.tenant_id = '\(Self.tenants[tenant])'")
            let seen = try await unlessRefused(
                "SELECT count(*)::text FROM postbell.sync('\(principal)', seen => '{\(subject)}')")
            try await run("RESET postbell.tenant_id")
            return seen == nil ? ["refused"] : []
        case .requeue(let key, let minutes):
            guard let identifier = try await identifier(key) else { return [] }
            let made = try await unlessRefused(
                "SELECT postbell.requeue('\(identifier)', clock_timestamp() + interval '\(minutes) min')")
            guard let successor = made?.first.flatMap(Identifier.init) else { return ["refused"] }
            keys[successor] = "again \(key)"
            return ["again \(key)"]
        default: return nil
        }
    }

    /// The rows of a query; nil when the schema refuses it with a code of its own.
    private func unlessRefused(_ sql: String) async throws -> [String]? {
        do { return try await rows(sql) } catch let error as PostgresError {
            guard error.sqlState?.code.hasPrefix("PB") == true else { throw error }
            return nil
        }
    }

    /// Also of one that had expired when it was made, whose id nobody was told.
    private func identifier(_ key: String) async throws -> Identifier? {
        if let known = keys.first(where: { $0.value == key }) { return known.key }
        let found = try await rows("SELECT id::text FROM postbell.outbox WHERE dedupe_key = '\(key)'")
        return found.first.flatMap(Identifier.init)
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
        let thread = draft.thread.map { "'\($0)'" } ?? "NULL"
        let delay = draft.delay > .zero ? interval(draft.delay) : "NULL"
        let made = try await rows(
            """
            SELECT postbell.enqueue('\(Self.kinds[Int(draft.kind)])', '\(draft.principal)', '\(draft.key)',
                '\(draft.payload)',
                subject => \(subject), thread => \(thread),
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
            "deliveries": "attempted_at,retry_at", "settlements": "at", "supersessions": "at", "erasures": "at",
            "receipts": "seen_at", "devices": "token_registered_at,success_due_at,last_success_at,rerouted_at",
            "workers": "started_at,heartbeat_at,stopped_at",
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
        case .recover(let worker, let known, let connected, let maxCrashes):
            let now = try await now()
            return BatchText.line(
                try await workers[worker].recover(
                    knownAt: now + .seconds(-known * 60), healthySince: now + .seconds(-connected * 60), limit: 100,
                    maxCrashes: maxCrashes))
        case .beat(let worker): _ = try await workers[worker].register(lanes: [], hooks: [], version: "1")
        case .signOff(let worker): try await workers[worker].unregister()
        case .askHooks(let worker, let number): return try await askHooks(worker, number)
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
        default: break
        }
        return []
    }

    private func askHooks(_ worker: Int, _ number: Int) async throws -> [String] {
        let hooks = try await workers[worker].hooks()
        guard let asked = batches[number].map(SimulatedSubject.hooked), !asked.isEmpty, !hooks.isEmpty else {
            return []
        }
        var replies: Result<[HookReply], HookFault>
        do throws(HookFault) {
            replies = .success(try await workers[worker].ask(hooks, about: asked))
        } catch {
            replies = .failure(error)
        }
        return SimulatedSubject.verdicts(replies, asked, keys)
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
        WITH RECURSIVE m AS (SELECT now() AS t),
        o AS (
            SELECT id, dedupe_key AS key FROM postbell.outbox WHERE predecessor IS NULL
            UNION ALL
            SELECT n.id, 'again ' || o.key FROM o JOIN postbell.outbox n ON n.predecessor = o.id
        )
        SELECT concat('note ', o.key, ' kind ', n.kind_no, ' ', n.payload, ' ', coalesce(n.thread, '-'))
        FROM o JOIN postbell.outbox n ON n.id = o.id
        UNION ALL
        SELECT concat('seen ', t.tenant_no, ' ', r.principal_id, ' ', r.subject)
        FROM postbell.receipts r JOIN postbell.tenants t ON t.tenant_id = r.tenant_id
        UNION ALL
        SELECT concat('worker ', ('x' || right(w.owner::text, 8))::bit(32)::int, ' heard ',
            round(extract(epoch FROM w.heartbeat_at - m.t) / 60), ' stopped ',
            coalesce(round(extract(epoch FROM w.stopped_at - m.t) / 60)::text, '-'))
        FROM m, postbell.workers w
        UNION ALL
        SELECT concat('queue ', o.key, '/', q.route_no, ' due ', round(extract(epoch FROM q.due_at - m.t) / 60),
            ' attempt ', q.attempt, ' crashes ', q.crashes, ' prior ', q.prior::text, ' after ', q.after_device,
            ' share ', q.urgency, '.', q.tenant_no)
        FROM m, postbell.queue q JOIN o ON o.id = q.notification_id
        UNION ALL
        SELECT concat('lease ', ('x' || right(l.batch::text, 8))::bit(32)::int, ' of ',
            ('x' || right(l.owner::text, 8))::bit(32)::int, ' ', o.key, '/', l.route_no, ' until ',
            round(extract(epoch FROM l.until - m.t) / 60), ' attempt ', u.attempt, ' crashes ', u.crashes,
            ' after ', u.cursor, ' to ', (
                SELECT string_agg(t.dev::text, ',' ORDER BY t.place)
                FROM unnest(l.t_pos, l.t_dev) WITH ORDINALITY t(pos, dev, place) WHERE t.pos = u.pos))
        FROM m, postbell.leases l, unnest(l.ids, l.attempts, l.crashes, l.cursors)
            WITH ORDINALITY u(id, attempt, crashes, cursor, pos)
        JOIN o ON o.id = u.id
        WHERE get_bit(l.open, (u.pos - 1)::int) = 1
        UNION ALL
        SELECT concat('ledger ', o.key, ' device ', d.device_no, ' batch ',
            ('x' || right(d.batch::text, 8))::bit(32)::int, ' ', postbell.outcome_name(d.outcome),
            ' final ', d.final::text, ' late ', d.late::text, ' retry ',
            coalesce(round(extract(epoch FROM d.retry_at - m.t) / 60)::text, '-'), ' attempt ', d.attempt,
            ' status ', coalesce(d.provider_status, 0), ' ', d.reason, ' token ', coalesce(d.token_seq::text, '-'))
        FROM m, postbell.deliveries d JOIN o ON o.id = d.notification_id
        UNION ALL
        SELECT concat('end ', o.key, ' route ', coalesce(s.route_no::text, '-'), ' ', s.status, ' ', s.reason)
        FROM postbell.settlements s JOIN o ON o.id = s.notification_id
        UNION ALL
        SELECT concat('device ', d.device_no, ' route ', d.route_no, ' ', d.status, ' ',
            coalesce(d.disabled_reason, '-'), ' failures ', d.failure_count, ' token ', d.token_seq, ' ',
            coalesce(d.token, '-'), ' due ', CASE WHEN d.success_due_at = '-infinity' THEN 'at once'
                ELSE round(extract(epoch FROM d.success_due_at - m.t) / 60)::text END,
            ' moved ', CASE WHEN d.rerouted_at = '-infinity' THEN '-'
                ELSE round(extract(epoch FROM d.rerouted_at - m.t) / 60)::text END)
        FROM m, postbell.devices d
        UNION ALL
        SELECT concat('event ', e.key) FROM postbell.events e WHERE e.name LIKE 'device.%'
        """
}
