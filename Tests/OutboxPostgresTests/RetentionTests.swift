import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What is removed when it was kept long enough, and what never is.
@Suite(.timeLimit(.minutes(5)))
struct RetentionTests {
    @Test(arguments: DatabaseServer.allCases)
    func `Nothing is removed until somebody says for how long it is kept`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await Self.over(["a"], outbox, worker)
            try await outbox.age(days: 70)
            #expect(try await outbox.texts("SELECT table_name FROM postbell.retain()") == [])
            #expect(try await outbox.kept() == ["a"])
        }
    }

    /// One notification in each state there is, all of them of the same age; what is open stays, however often it is
    /// asked, and goes when it is over and old enough.
    @Test(arguments: DatabaseServer.allCases)
    func `What is over goes with its ends, and nothing open ever does`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await Self.over(["delivered"], outbox, worker)
            try await outbox.enqueue("cancelled", "superseded", "expired", more: "subject => 's'")
            try await outbox.run(
                """
                SELECT postbell.cancel(id) FROM postbell.outbox WHERE dedupe_key = 'cancelled';
                UPDATE postbell.outbox SET subject = NULL WHERE dedupe_key <> 'superseded';
                UPDATE postbell.outbox SET expires_at = now() WHERE dedupe_key = 'expired';
                SELECT postbell.supersede('default', 's')
                """)
            #expect(try await worker.sweep() == 3)
            try await outbox.enqueue("tried")
            let tried = try await worker.claimed()
            var flush = tried.flush(1, outcome: Outcome(.retry, status: 500), final: false)
            flush.returns = [.back(1, after: .seconds(3600))]
            _ = try await worker.settle(flush)
            try await outbox.enqueue("leased")
            let leased = try await worker.claimed()
            try await outbox.enqueue("waiting")
            try await outbox.enqueue("nobody-yet", to: "nobody")
            try await outbox.run("SELECT postbell.acknowledge(id) FROM postbell.outbox")
            try await outbox.age(days: 40)
            try await outbox.keep(days: 30)
            let open = ["leased", "nobody-yet", "tried", "waiting"]
            #expect(try await outbox.retain() == 4)
            #expect(try await outbox.kept() == open)
            #expect(try await outbox.value("SELECT count(*) FROM postbell.settlements") == "0")
            #expect(
                try await outbox.value(
                    "SELECT count(*) || ' of ' || count(o.id) FROM postbell.acknowledgements a "
                        + "LEFT JOIN postbell.outbox o ON o.id = a.notification_id") == "4 of 4")
            #expect(try await outbox.retain() == 0)
            #expect(try await outbox.kept() == open)
            #expect(
                try await outbox.texts("SELECT dedupe_key FROM postbell.notifications WHERE place IS NULL") == [])
            _ = try await worker.adopt(leased.identifier)
            #expect(try await outbox.retain() == 0, "what came back from a lease waits again")
            try await outbox.run("SELECT postbell.cancel(id) FROM postbell.outbox")
            #expect(try await worker.sweep() == 4)
            #expect(try await outbox.retain() == 0, "they have ended just now")
            try await outbox.age(days: 31)
            #expect(try await outbox.retain() == 4)
            #expect(try await outbox.kept() == [])
        }
    }

    /// The last of what happened counts: when it was planned for, what is on the ledger, how it ended.
    @Test(arguments: DatabaseServer.allCases)
    func `A notification is kept from the last of what happened to it`(server: DatabaseServer) async throws {
        try await Self.on(server, audited: false) { outbox, worker in
            try await Self.over(["planned", "sent", "ended", "past"], outbox, worker)
            try await outbox.age(days: 40)
            try await outbox.run(
                """
                UPDATE postbell.outbox SET planned_at = now() - interval '29 days' WHERE dedupe_key = 'planned';
                UPDATE postbell.deliveries SET id = postbell.uuid7(now() - interval '29 days')
                FROM postbell.outbox o WHERE notification_id = o.id AND o.dedupe_key = 'sent';
                INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason, at)
                SELECT id, 1, 1, 'failed', 'ceiling', now() - interval '29 days'
                FROM postbell.outbox WHERE dedupe_key = 'ended'
                """)
            try await outbox.keep(days: 30)
            #expect(try await outbox.retain() == 1)
            #expect(try await outbox.kept() == ["ended", "planned", "sent"])
            try await outbox.age(days: 2)
            #expect(try await outbox.retain() == 3)
        }
    }

    /// What is open at the front must not be looked at for ever.
    @Test(arguments: DatabaseServer.allCases)
    func `Small batches go on behind what is open and come by everything`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await outbox.enqueue("open-1", "open-2", "open-3")
            try await outbox.run("UPDATE postbell.queue SET due_at = now() + interval '1 h'")
            try await Self.over(["a", "b", "c"], outbox, worker)
            try await outbox.age(days: 40)
            try await outbox.keep(days: 30)
            var removed: [Int] = []
            for _ in 1...4 { removed.append(try await outbox.retain(limit: 2)) }
            #expect(removed == [0, 1, 2, 0])
            #expect(try await outbox.kept() == ["open-1", "open-2", "open-3"])
            let store = try await Self.behind(outbox, limit: 2)
            #expect(store == [true, false], "the walk has an end, and begins anew")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What somebody holds is left, and nobody is waited for`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await Self.over(["held", "free"], outbox, worker)
            try await outbox.age(days: 40)
            try await outbox.keep(days: 30)
            let holder = try await outbox.database.connect()
            try await holder.execute("BEGIN; SELECT FROM postbell.outbox WHERE dedupe_key = 'held' FOR NO KEY UPDATE")
            try await outbox.run("SET lock_timeout = '1ms'")
            #expect(try await outbox.retain() == 1)
            #expect(try await outbox.kept() == ["held"])
            let other = try await outbox.database.connect()
            try await holder.execute("ROLLBACK; BEGIN; SELECT postbell.retain()")
            #expect(try await other.texts("SELECT postbell.retain()") == [], "one session at a time")
            try await holder.execute("COMMIT")
            #expect(try await outbox.kept() == [])
            await holder.close()
            await other.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What is left of a forgotten person goes with the rest`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await outbox.enqueue("a")
            try await outbox.run("SELECT postbell.forget('anna')")
            let husks = "SELECT count(*) FROM postbell.outbox WHERE principal_id = ''"
            try await outbox.age(days: 40)
            try await outbox.keep(days: 30)
            #expect(try await outbox.retain() == 0, "its work is not over")
            #expect(try await outbox.value(husks) == "1")
            #expect(try await worker.sweep() == 1)
            #expect(try await outbox.retain() == 1)
            #expect(try await outbox.value(husks) == "0")
        }
    }

    /// A fact is against everything that was enqueued before it, however old both are.
    @Test(arguments: DatabaseServer.allCases)
    func `A fact stays as long as anything is left that it could be against`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await outbox.enqueue("open", more: "subject => 's', thread => 't'")
            try await outbox.run(
                """
                SELECT postbell.supersede('default', 's'), postbell.erase('default', 't');
                SELECT postbell.sync('anna', seen => '{s}')
                """)
            try await outbox.age(days: 40)
            try await outbox.keep(days: 30)
            try await outbox.run("SELECT postbell.retain()")
            #expect(try await Self.facts(outbox) == ["1", "1", "1"])
            #expect(try await worker.sweep() == 1, "it ends by them")
            try await outbox.run("UPDATE postbell.settlements SET at = at - interval '40 days'")
            try await outbox.enqueue("newer", more: "subject => 's'")
            try await outbox.run("SELECT postbell.retain()")
            #expect(try await outbox.kept() == ["newer"])
            #expect(try await Self.facts(outbox) == ["0", "0", "0"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Events, and workers that are gone, have policies of their own`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await outbox.run(
                """
                INSERT INTO postbell.workers (owner, name, version, heartbeat_at)
                SELECT o, 'w', '1', h FROM (VALUES (gen_random_uuid(), now() - interval '41 days'),
                    ('\(worker.owner)', now() - interval '41 days'), (gen_random_uuid(), now())) v(o, h)
                """)
            try await outbox.enqueue("a")
            let batch = try await worker.claimed()
            try await outbox.run("UPDATE postbell.events SET id = postbell.uuid7(now() - interval '41 days')")
            try await outbox.keep(days: 30)
            try await outbox.run("SELECT postbell.set_retention('workers', '50 days')")
            #expect(try await outbox.retain("workers") == 0)
            #expect(try await outbox.value("SELECT count(*) FROM postbell.events") == "0")
            try await outbox.run("SELECT postbell.set_retention('workers', '40 days')")
            #expect(try await outbox.retain("workers") == 1, "who holds a lease stays")
            _ = try await worker.settle(batch.flush(1))
            #expect(try await outbox.retain("workers") == 1)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A dedupe key counts as long as its row, and that is a day at least`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, worker in
            try await Self.over(["a"], outbox, worker)
            try await outbox.age(days: 2)
            #expect(await outbox.admin.refusal("SELECT postbell.set_retention('outbox', '23 h')") == "PB501")
            #expect(try await outbox.enqueue("a") == ["null"])
            try await outbox.run("SELECT postbell.set_retention('outbox', '1 day')")
            #expect(try await outbox.retain() == 1)
            #expect(try await outbox.enqueue("a") != ["null"])
        }
    }

    /// What tells of other rows outlives them.
    @Test(arguments: DatabaseServer.allCases)
    func `A policy that would take the history from what is kept is refused`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, _ in
            for (call, refusal) in [
                ("'deliveries', '30 days'", "PB501"), ("'outbox', '30 days'", nil),
                ("'deliveries', '29 days'", "PB501"),
                ("'events', '29 days'", "PB501"), ("'deliveries', '30 days'", nil), ("'workers', '29 days'", "PB501"),
                ("'outbox', '31 days'", "PB501"), ("'outbox', NULL", "PB501"), ("'deliveries', NULL", nil),
                ("'outbox', NULL", nil), ("'queue', '1 day'", "PB501"), ("'outbox', '-1 day'", "PB501"),
            ] as [(String, String?)] {
                #expect(await outbox.admin.refusal("SELECT postbell.set_retention(\(call))") == refusal, "\(call)")
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Retention is for operators who are confined to no tenant`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox, _ in
            let login = "test_operator_\(outbox.database.name)"
            try await outbox.run("CREATE ROLE \(login) LOGIN; GRANT postbell_operator TO \(login)")
            let session = try await outbox.database.connect(login: login)
            let calls = ["set_retention('outbox', '9 days')", "retain()", "drop_ledger_day()"]
            for call in calls { #expect(await session.refusal("SELECT postbell.\(call)") == nil, "\(call)") }
            #expect(
                try await session.texts("SELECT changed_by FROM postbell.retention WHERE keep = '9 days'") == [login])
            try await outbox.run("INSERT INTO postbell.role_tenants VALUES ('\(login)', 'default')")
            for call in calls { #expect(await session.refusal("SELECT postbell.\(call)") == "PB005", "\(call)") }
            await session.close()
            try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
        }
    }

    // MARK: Scene

    /// Anna's phone, and a worker.
    private static func on(
        _ server: DatabaseServer, audited: Bool = true, _ body: (Outbox, Worker) async throws -> Void
    ) async throws {
        try await Outbox.on(server, audited: audited) { outbox in
            try await outbox.device()
            let worker = try await outbox.worker()
            try await body(outbox, worker)
            if audited { #expect(try await outbox.faults() == []) }
        }
    }

    /// Notifications that were delivered.
    static func over(_ keys: [String], _ outbox: Outbox, _ worker: Worker) async throws {
        for key in keys {
            try await outbox.enqueue(key)
            let batch = try await worker.claimed()
            _ = try await worker.settle(batch.flush(1))
        }
    }

    private static func facts(_ outbox: Outbox) async throws -> [String] {
        try await outbox.texts(
            """
            SELECT count(*) FROM postbell.supersessions UNION ALL
            SELECT count(*) FROM postbell.erasures UNION ALL
            SELECT count(*) FROM postbell.receipts
            """)
    }

    /// What the calls of one walk say: whether there is more.
    private static func behind(_ outbox: Outbox, limit: Int) async throws -> [Bool] {
        var answers: [Bool] = []
        repeat {
            let answer = try await outbox.value(
                "SELECT is_behind FROM postbell.retain(\(limit)) WHERE table_name = 'outbox'")
            answers.append(answer == "t")
        } while answers.last == true && answers.count < 10
        return answers
    }
}
