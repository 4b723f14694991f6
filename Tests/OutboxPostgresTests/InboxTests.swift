import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What a person's client that was offline, or has no push at all, reads afterwards.
@Suite(.timeLimit(.minutes(5)))
struct InboxTests {
    /// The dedupe keys of a page.
    private static func page(
        _ session: PostgresConnection, of outbox: Outbox, before: String? = nil, rows: Int = 50,
        principal: String = "anna"
    ) async throws -> [String] {
        let ids = try await session.texts(
            "SELECT id FROM postbell.inbox('\(principal)', \(before.map { "'\($0)'" } ?? "NULL"), \(rows))")
        guard !ids.isEmpty else { return [] }
        return try await outbox.texts(
            "SELECT dedupe_key FROM postbell.outbox WHERE id IN ('\(ids.joined(separator: "', '"))') ORDER BY id DESC")
    }

    private static func id(_ key: String, _ outbox: Outbox) async throws -> String {
        try await outbox.value("SELECT id FROM postbell.outbox WHERE dedupe_key = '\(key)'")
    }

    /// No provider, no device: rows wait, then have their end, and the inbox tells of each at any time.
    @Test(arguments: DatabaseServer.allCases)
    func `Every kind that was enqueued without any transport is read later, page by page`(
        server: DatabaseServer
    ) async throws {
        for catalog in ShippedCatalog.allCases {
            try await Outbox.on(server) { outbox in
                try await outbox.run("SELECT postbell.drop_kind('note')")
                try await outbox.run(try catalog.catalog())
                let samples = CatalogSample.all(of: catalog)
                for (index, sample) in samples.enumerated() {
                    try await outbox.run(
                        """
                        INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload, thread, subject, badge)
                        VALUES ('anna', '\(sample.kind)', 'key-\(index)', '\(sample.payload)',
                            \(sample.thread.map { "'\($0)'" } ?? "NULL"),
                            \(sample.subject.map { "'\($0)'" } ?? "NULL"), \(sample.badge.map { "\($0)" } ?? "NULL"))
                        """)
                }
                let registrar = try await outbox.database.connect(role: "postbell_registrar")
                func inbox() async throws -> [String] {
                    var lines: [String] = []
                    var before = "NULL"
                    // no more pages than rows, however wrong they are
                    for _ in 0...samples.count {
                        let page = try await registrar.texts(
                            """
                            SELECT id || ' ' || concat_ws(' ', kind, status, reason, devices)
                            FROM postbell.inbox('anna', \(before), 3)
                            """)
                        guard let last = page.last else { return lines }
                        lines += page.map { String($0.drop { $0 != " " }.dropFirst()) }
                        before = "'\(last.prefix(36))'"
                    }
                    return lines + ["and more"]
                }
                let kinds = samples.map(\.kind).reversed()
                let waiting = try await inbox()
                #expect(waiting == kinds.map { "\($0) pending []" })
                // the wait for a device is over
                try await outbox.run("UPDATE postbell.queue SET due_at = now()")
                let worker = try await outbox.worker()
                #expect(try await worker.resolve() == samples.count)
                let ended = try await inbox()
                #expect(ended == kinds.map { "\($0) dispatched no_device []" })
                // what was stored is what is read, to the letter
                let stored = "SELECT payload FROM postbell.outbox ORDER BY id DESC"
                #expect(
                    try await registrar.texts("SELECT payload FROM postbell.inbox('anna', NULL, 200)")
                        == outbox.texts(stored))
                await registrar.close()
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A row has its status, what was seen and fetched, and what became of it at each device`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            for client in ["phone", "tablet", "watch"] { try await outbox.device(client) }
            try await outbox.run("UPDATE postbell.devices SET name = 'my ' || client_device_id")
            try await outbox.enqueue("a", more: "'{\"word\": \"tea\"}', 's', 't'")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            let targets = Array(batch.targets)
            var flush = batch.flush()
            flush.ledger = [
                batch.row(batch.dispatches[0], targets[0], outcome: Outcome(.delivered, status: 200), final: true),
                batch.row(
                    batch.dispatches[0], targets[1], outcome: Outcome(.rejected, status: 400, reason: "BadTopic"),
                    final: true),
                batch.row(
                    batch.dispatches[0], targets[2], outcome: Outcome(.retry, status: 503), final: false,
                    retryAfter: .seconds(60)),
            ]
            flush.leaving = [1]
            flush.returns = [.back(1, after: .seconds(60))]
            _ = try await worker.settle(flush)
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            let row = """
                SELECT concat_ws(' ', kind, subject, thread, payload, status, reason, seen_at IS NULL,
                    acknowledged_at IS NULL, settled_at IS NULL) FROM postbell.inbox('anna')
                """
            let devices = """
                SELECT concat_ws(' ', d ->> 'name', d ->> 'outcome', d ->> 'final', d ->> 'reason', d ? 'retry_at',
                    d ? 'at') FROM postbell.inbox('anna') i, jsonb_array_elements(i.devices::jsonb) d
                """
            #expect(try await registrar.texts(row) == [#"note s t {"word": "tea"} pending t t t"#])
            #expect(
                try await registrar.texts(devices) == [
                    "my phone delivered true f t", "my tablet rejected true BadTopic f t", "my watch retry false t t",
                ])
            // It is read, fetched, and sent at last.
            try await registrar.execute(
                "SELECT postbell.acknowledge(id) FROM postbell.inbox('anna'); "
                    + "SELECT postbell.sync('anna', seen => '{s}')"
            )
            try await outbox.run(
                "UPDATE postbell.queue SET due_at = now(); UPDATE postbell.deliveries SET retry_at = now() "
                    + "WHERE retry_at IS NOT NULL; SELECT postbell.device_delete(id) FROM postbell.devices "
                    + "WHERE client_device_id = 'phone'")
            let again = try await worker.claimed()
            _ = try await worker.settle(again.flush(1))
            #expect(try await registrar.texts(row) == [#"note s t {"word": "tea"} failed BadTopic f f f"#])
            #expect(
                try await registrar.texts(devices) == [
                    "delivered true f t", "my tablet rejected true BadTopic f t", "my watch delivered true f t",
                ], "a device that is gone has no name, and the last row of the watch decides")
            await registrar.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Pages are stable while notifications come, end and lose their payload`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for number in 1...9 { try await outbox.enqueue("a\(number)", more: "thread => 't\(number)'") }
            try await outbox.enqueue("hers", to: "berta")
            #expect(try await Self.page(outbox.admin, of: outbox, rows: 3) == ["a9", "a8", "a7"])
            let mark = try await Self.id("a7", outbox)
            // The last of the page ends, one behind it is erased, new ones come before it.
            try await outbox.run("SELECT postbell.cancel('\(mark)'); SELECT postbell.erase('default', 't5')")
            try await outbox.enqueue("b1", "b2")
            #expect(try await Self.page(outbox.admin, of: outbox, before: mark, rows: 3) == ["a6", "a5", "a4"])
            #expect(
                try await Self.page(outbox.admin, of: outbox, before: Self.id("a4", outbox), rows: 4)
                    == ["a3", "a2", "a1"])
            #expect(try await Self.page(outbox.admin, of: outbox, before: Self.id("a1", outbox)) == [])
            #expect(try await Self.page(outbox.admin, of: outbox, rows: 3) == ["b2", "b1", "a9"])
            for arguments in ["'anna', NULL, 0", "'anna', NULL, 201", "'anna', NULL, NULL", "NULL", "''"] {
                #expect(await outbox.admin.refusal("SELECT postbell.inbox(\(arguments))") == "PB303")
            }
        }
    }

    /// Calls by which somebody else could learn of anna's notification, and what they answer about nobody's.
    private static let calls: [(call: String, answer: [String])] = [
        ("SELECT postbell.acknowledge($1)", ["null"]), ("SELECT postbell.acknowledge($1, 'berta')", ["null"]),
        ("SELECT postbell.acknowledge($1, 'anna')", ["null"]),
        ("SELECT id FROM postbell.inbox('berta', $1)", []), ("SELECT id FROM postbell.inbox('anna', $1)", []),
        ("SELECT id FROM postbell.inbox('anna')", []),
        ("SELECT obsolete FROM postbell.sync('anna', ARRAY[$1::uuid])", ["{}"]),
        ("SELECT unread FROM postbell.sync('anna', query => ARRAY[$1::uuid])", ["{}"]),
        ("SELECT obsolete FROM postbell.sync('anna', seen => ARRAY['s'])", ["PB301"]),
        ("SELECT obsolete FROM postbell.sync('berta', seen => ARRAY['s'])", ["PB301"]),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `A foreign notification and an unknown one answer alike`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let id = try await outbox.enqueue("a", more: "subject => 's'")[0]
            try await outbox.run("SELECT postbell.acknowledge('\(id)'); SELECT postbell.supersede('default', 's')")
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            for session in ["SET postbell.tenant_id = 'other'", "SET postbell.principal_id = 'berta'"] {
                try await registrar.execute("RESET ALL; SET ROLE postbell_registrar; \(session)")
                for (call, answer) in Self.calls {
                    for named in ["'\(id)'", "gen_random_uuid()"] {
                        let sql = call.replacing("$1", with: named)
                        let (said, message) = await registrar.said(sql)
                        #expect(said == answer, "\(session): \(sql)")
                        #expect(!message.contains(id), "\(session): \(message)")
                    }
                }
            }
            // A session of nobody's that names the person with each call.
            try await registrar.execute("RESET ALL; SET ROLE postbell_registrar")
            #expect(try await registrar.texts("SELECT postbell.acknowledge('\(id)', 'berta')") == ["null"])
            #expect(try await registrar.texts("SELECT postbell.acknowledge('\(id)', 'anna') IS NULL") == ["f"])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.receipts") == "0")
            await registrar.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `The first acknowledgement counts, also of two at once`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let ids = try await outbox.enqueue("a", "b")
            let sessions = [try await outbox.database.connect(), try await outbox.database.connect()]
            let call = "SELECT postbell.acknowledge('\(ids[0])')"
            try await sessions[0].execute("BEGIN")
            let first = try await sessions[0].texts(call)
            async let second = sessions[1].texts(call)
            // it waits for the other's end
            try await outbox.admin.expect("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted", "t")
            try await sessions[0].execute("COMMIT")
            #expect(try await second == first)
            #expect(try await outbox.texts(call) == first)
            #expect(
                try await outbox.texts(
                    "SELECT concat_ws(' ', tenant_id, notification_id) FROM postbell.acknowledgements")
                    == ["default \(ids[0])"])
            for session in sessions { await session.close() }
        }
    }

    /// Somebody has very many notifications: a page costs what is on it.
    @Test(arguments: DatabaseServer.allCases)
    func `A page of very many notifications reads no more than a page`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                INSERT INTO postbell.outbox (principal_id, kind, dedupe_key)
                SELECT 'anna', 'note', 'k' || lpad(n::text, 4, '0') FROM generate_series(1, 3000) n
                """)
            let mark = try await Self.id("k1500", outbox)
            var rows: [String] = []
            let read = try await outbox.reading(of: "outbox", "queue", "settlements") {
                rows = try await outbox.texts("SELECT id FROM postbell.inbox('anna', '\(mark)', 20)")
            }
            #expect(rows.count == 20)
            for (table, read) in read { #expect(read.walked == 0 && read.fetched <= 60, "\(table) \(read)") }
        }
    }

    /// A device of a person that has very many is one of so many; the row says what became of the first hundred.
    @Test(arguments: DatabaseServer.allCases)
    func `A row tells of a hundred devices at most`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.importDevices(count: 130)
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(route: 2, targets: 200)
            _ = try await worker.settle(batch.flush(1))
            #expect(
                try await outbox.value("SELECT json_array_length(devices) FROM postbell.inbox('anna')") == "100")
        }
    }
}
