import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// A person, or a whole tenant, whose data goes.
@Suite(.timeLimit(.minutes(5)))
struct ForgetTests {
    /// Every value of the schema that has one of these words in it, as table and row.
    private static func traces(of words: String..., in outbox: Outbox) async throws -> [String] {
        let tables = try await outbox.texts(
            """
            SELECT c.relname FROM pg_class c
            WHERE c.relnamespace = 'postbell'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            ORDER BY 1
            """)
        var found: [String] = []
        for table in tables {
            let match = words.map { "r::text LIKE '%\($0)%'" }.joined(separator: " OR ")
            found += try await outbox.texts("SELECT '\(table) ' || r::text FROM postbell.\(table) r WHERE \(match)")
        }
        return found
    }

    /// All that a person can have: devices, notifications in every place, receipts, answers of registrations, events.
    private static func life(of person: String, tenant: String = "default", in outbox: Outbox) async throws {
        try await outbox.run(
            """
            SET postbell.tenant_id = '\(tenant)';
            SELECT postbell.device_register('\(person)', '\(person)-phone', 'fcm', 'app.two',
                'token-of-\(tenant)-\(person)', name => '\(person)s phone', idempotency_key => 'key-of-\(person)');
            SELECT postbell.enqueue('note', '\(person)', '\(person):' || n, '{"word": "\(person)"}',
                '\(person):' || n, '\(person)', collapse_key => '\(person)')
            FROM generate_series(1, 3) n;
            SELECT postbell.sync('\(person)', seen => '{\(person):1}');
            SELECT postbell.acknowledge(id) FROM postbell.inbox('\(person)', NULL, 1);
            SELECT postbell.enqueue_or_note('note', '\(person)', 'x', '{"none": 1}');
            RESET postbell.tenant_id
            """)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Nothing is left that names a forgotten person, and nobody else is touched`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            for person in ["anna", "berta"] { try await Self.life(of: person, in: outbox) }
            try await Self.life(of: "anna", tenant: "other", in: outbox)
            // one is over and was sent long ago, one is in flight, one waits
            let worker = try await outbox.worker()
            _ = try await worker.settle(worker.claimed(1, route: 2).flush(1))
            // all are long past their deadline; only what no worker has to do with goes as a whole
            let held = try await worker.claimed(1, route: 2)
            try await outbox.run(
                "UPDATE postbell.outbox SET expires_at = now() - interval '2 days' "
                    + "WHERE principal_id = 'anna' AND tenant_id = 'default'")
            let sent = try await outbox.value(
                "SELECT id FROM postbell.outbox WHERE dedupe_key = 'anna:1' AND tenant_id = 'default'")
            let others = "SELECT o::text FROM postbell.outbox o WHERE principal_id <> '' ORDER BY id"
            let before = try await outbox.texts(others.replacing("<> ''", with: "= 'berta' OR tenant_id = 'other'"))
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            #expect(try await registrar.texts("SELECT postbell.forget('anna')") == ["t"])
            let traces = try await Self.traces(of: "anna", in: outbox)
            #expect(traces.filter { !$0.contains("other") } == [])
            #expect(try await outbox.texts(others) == before)
            // what was long over is gone as a whole
            #expect(
                try await outbox.value("SELECT count(*) FROM postbell.deliveries WHERE notification_id = '\(sent)'")
                    == "0")
            #expect(try await outbox.value("SELECT count(*) FROM postbell.outbox WHERE id = '\(sent)'") == "0")
            let event = "SELECT detail - 'by' FROM postbell.events WHERE name = 'principal.forgotten'"
            #expect(try await outbox.texts(event) == [#"{"devices": 1, "notifications": 3}"#])
            // what a worker has in hand falls out, and what waits ends at its claim
            #expect(try await worker.recheck(held) == [.erased])
            var flush = held.flush(1, outcome: Outcome(.skipped, reason: "erased"))
            flush.ends = [PositionEnd(position: 1, status: .cancelled, reason: .erased, wholeNotification: true)]
            _ = try await worker.settle(flush)
            let closed = try await worker.claimed(route: 2)
            #expect(closed.dispatches.map(\.verdict).filter { $0 == .closed }.count == 1)
            await registrar.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A forgotten person is answered as one that never was`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.life(of: "anna", in: outbox)
            try await Self.life(of: "anna", tenant: "other", in: outbox)
            let id = try await outbox.value(
                "SELECT id FROM postbell.outbox WHERE dedupe_key = 'anna:2' AND tenant_id = 'default'")
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            // by a session of another tenant, or one that acts for another person, as if there were nobody
            for session in ["SET postbell.tenant_id = 'third'", "SET postbell.principal_id = 'berta'"] {
                try await registrar.execute("RESET ALL; SET ROLE postbell_registrar; \(session)")
                for person in ["anna", "nobody"] {
                    #expect(try await registrar.texts("SELECT postbell.forget('\(person)')") == ["t"])
                }
            }
            #expect(try await outbox.value("SELECT count(*) FROM postbell.devices") == "2")
            try await registrar.execute("RESET ALL; SET ROLE postbell_registrar; SELECT postbell.forget('anna')")
            for person in ["anna", "nobody"] {
                for (call, answer) in [
                    ("SELECT postbell.forget('\(person)')", ["t"]), ("SELECT id FROM postbell.inbox('\(person)')", []),
                    ("SELECT device_id FROM postbell.device_list('\(person)')", []),
                    (
                        "SELECT postbell.sync('\(person)', ARRAY['\(id)'::uuid], query => ARRAY['\(id)'::uuid])",
                        ["({},{})"]
                    ),
                    ("SELECT postbell.sync('\(person)', seen => '{anna:1}')", ["PB301"]),
                    ("SELECT postbell.acknowledge('\(id)')", ["null"]),
                ] {
                    #expect(await registrar.said(call).answer == answer, "\(call)")
                }
            }
            for arguments in ["''", "NULL", "'anna', 0", "'anna', 100001", "'anna', NULL"] {
                #expect(await registrar.refusal("SELECT postbell.forget(\(arguments))") == "PB304")
            }
            // operators see a husk, and do not send it anew, also when a worker has seen its end
            #expect(await outbox.admin.refusal("SELECT postbell.requeue('\(id)')") == "PB009")
            let worker = try await outbox.worker()
            let husks = try await worker.claimed(route: 2)
            #expect(husks.dispatches.map(\.verdict) == [.closed, .closed, .closed])
            _ = try await worker.settle(husks.flush(1, 2, 3))
            let (answer, message) = await outbox.admin.said("SELECT postbell.requeue('\(id)')")
            #expect(answer == ["PB009"] && message.contains("its person was forgotten"), "\(message)")
            #expect(try await outbox.value("SELECT postbell.cancel('\(id)')") == "f")
            #expect(try await outbox.value("SELECT count(*) FROM postbell.devices WHERE tenant_id = 'other'") == "1")
            // who comes back is somebody new
            try await Self.life(of: "anna", in: outbox)
            #expect(try await registrar.texts("SELECT count(*) FROM postbell.inbox('anna')") == ["3"])
            await registrar.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A call does so much and no more, and says whether anything is left`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.importDevices(count: 7)
            for number in 1...5 { try await outbox.enqueue("k\(number)", more: "subject => 's\(number)'") }
            try await outbox.run("SELECT postbell.sync('anna', seen => '{s1,s2,s3}')")
            func counts() async throws -> String {
                try await outbox.value(
                    """
                    SELECT concat_ws(' ', (SELECT count(*) FROM postbell.devices),
                        (SELECT count(*) FROM postbell.outbox WHERE principal_id = 'anna'),
                        (SELECT count(*) FROM postbell.receipts))
                    """)
            }
            var left: [String] = [try await counts()]
            for _ in 1...5 {
                let done = try await outbox.value("SELECT postbell.forget('anna', 4)")
                left.append("\(done): \(try await counts())")
            }
            #expect(left == ["7 5 3", "f: 3 5 3", "f: 0 4 3", "f: 0 0 3", "t: 0 0 0", "t: 0 0 0"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A forgotten tenant leaves nothing, and the others all`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for tenant in ["mine", "other"] {
                for person in ["anna", "berta"] { try await Self.life(of: person, tenant: tenant, in: outbox) }
                try await outbox.run(
                    "SET postbell.tenant_id = '\(tenant)'; SELECT postbell.supersede('\(tenant)', 'anna:3'), "
                        + "postbell.erase('\(tenant)', 'berta'); RESET postbell.tenant_id")
            }
            let operators = try await outbox.database.connect(role: "postbell_operator")
            // it has to be named twice, and not by a session that acts for one person
            #expect(await operators.refusal("SELECT postbell.forget_tenant('mine')") == "PB005")
            for settings in [
                "SET postbell.tenant_id = 'other'",
                "SET postbell.tenant_id = 'mine'; SET postbell.principal_id = 'anna'",
            ] {
                try await operators.execute("RESET ALL; SET ROLE postbell_operator; \(settings)")
                #expect(await operators.refusal("SELECT postbell.forget_tenant('mine')") == "PB005")
            }
            try await operators.execute("RESET ALL; SET ROLE postbell_operator; SET postbell.tenant_id = 'mine'")
            #expect(await operators.refusal("SELECT postbell.forget_tenant('mine', 0)") == "PB304")
            let others = try await Self.traces(of: "other", in: outbox)
            #expect(try await operators.texts("SELECT postbell.forget_tenant('mine', 5)") == ["f"])
            #expect(try await operators.texts("SELECT postbell.forget_tenant('mine')") == ["t"])
            #expect(try await operators.texts("SELECT postbell.forget_tenant('mine')") == ["t"])
            #expect(try await Self.traces(of: "other", in: outbox) == others)
            let traces = try await Self.traces(of: "mine", in: outbox)
            // its number and its husks, which say no more than that they were
            let kinds = Set(traces.map { String($0.prefix { $0 != " " }) })
            #expect(kinds == ["events", "outbox", "tenants"])
            #expect(traces.filter { $0.contains("anna") || $0.contains("berta") } == [])
            #expect(
                try await outbox.texts("SELECT DISTINCT name FROM postbell.events WHERE tenant_id = 'mine'")
                    == ["tenant.forgotten"])
            await operators.close()
        }
    }

    /// The transaction that forgets stays open: no worker waits for it, whatever it has in hand.
    @Test(arguments: DatabaseServer.allCases)
    func `No worker waits for who forgets`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for person in ["anna", "berta"] { try await Self.life(of: person, in: outbox) }
            let worker = try await outbox.worker()
            let held = try await worker.claimed(2, route: 2)
            let repeated = held.flush(1)
            _ = try await worker.settle(repeated)
            let session = try await outbox.database.connect()
            try await session.execute("BEGIN; SELECT postbell.forget('anna')")
            try await worker.connection.execute("SET lock_timeout = '300ms'")
            _ = try await worker.settle(repeated)  // its answer was lost
            _ = try await worker.settle(held.flush(2))
            _ = try await worker.apply(held.effect(.succeeded))
            let next = try await worker.claimed(route: 2)
            #expect(next.dispatches.count == 4, "all that waits")
            _ = try await worker.recheck(next)
            try await session.execute("COMMIT")
            #expect(try await worker.recheck(next)?.filter { $0 == .erased }.count == 1, "of the four")
            var flush = next.flush(1, 2, 3, 4)
            flush.leaving = [1, 2, 3, 4]
            _ = try await worker.settle(flush)
            await session.close()
        }
    }
}
