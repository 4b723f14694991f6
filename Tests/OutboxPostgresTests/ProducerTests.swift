import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The producer's side: what an insert becomes, and what is refused.
@Suite(.timeLimit(.minutes(5)))
struct ProducerTests {
    @Test(arguments: DatabaseServer.allCases)
    func `An insert is queued once per route, and a repeated key is nothing`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.device("watch", route: 2)
            for _ in 1...2 {
                try await outbox.run(
                    """
                    INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
                    VALUES ('anna', 'note', 'a', jsonb_build_object('word', 'tea')) ON CONFLICT DO NOTHING
                    """)
            }
            #expect(try await outbox.texts("SELECT route_no FROM postbell.queue ORDER BY 1") == ["1", "2"])
            #expect(try await outbox.enqueue("a") == ["null"])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.outbox") == "1")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Ids, times and the deadline come from one clock reading and the kind`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SELECT postbell.define_kind('slow', 'template', '{}', '{"title": "x"}', urgency => 'bulk',
                    grace => '30 s', max_age => '1 h', collapse => 'thread');
                INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, thread) VALUES ('anna', 'slow', 'a', 't')
                """)
            #expect(
                try await outbox.value(
                    """
                    SELECT (planned_at - created_at, expires_at - planned_at, urgency, collapse_key,
                        id >= postbell.uuid_floor(created_at)
                            AND id < postbell.uuid_floor(created_at + interval '1 ms'),
                        substr(id::text, 15, 1))
                    FROM postbell.outbox
                    """) == "(00:00:30,01:00:00,bulk,t,t,7)")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Ids sort in the order in which rows were made`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let isSorted = try await outbox.value(
                """
                SELECT bool_and(a < b) FROM (SELECT id AS a, lead(id) OVER (ORDER BY n) AS b FROM (
                    SELECT n, postbell.uuid7(TIMESTAMPTZ '2026-01-01' + n * interval '3 microseconds') AS id
                    FROM generate_series(1, 2000) n) i) p WHERE b IS NOT NULL
                """)
            #expect(isSorted == "t")
        }
    }

    /// Every refusal has its SQLSTATE and names kind and key; none repeats a value.
    static let refusals: [(state: String, code: String, call: String)] = [
        ("PB001", "notification.unknown_kind", "'nope', 'anna', 'k'"),
        ("PB002", "notification.payload_key", #"'shop', 'anna', 'k', '{"order": 1, "foreign": "sesame"}'"#),
        ("PB002", "notification.payload_key", #"'shop', 'anna', 'k', '{"word": "sesame"}'"#),
        ("PB002", "notification.payload_key", #"'shop', 'anna', 'k', '{"order": 1, "order": 2}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": "sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1.5}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": null}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1, "word": "Open sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1, "size": "sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1, "at": "2026-01-01 sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1, "line": ["sesame"]}'"#),
        ("PB010", "notification.visible_text", #"'shop', 'anna', 'k', '{"order": 1, "line": "password=sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1, "key": "sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1, "who": "sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": 1, "gift": "sesame"}'"#),
        ("PB003", "notification.payload_type", #"'shop', 'anna', 'k', '{"order": {"sesame": 1}}'"#),
        ("PB004", "notification.too_large", "'shop', 'anna', 'k', repeat('sesame', 2000)"),
        ("PB005", "notification.not_permitted", "'private', 'anna', 'k'"),
        ("PB006", "notification.invalid", "'note', 'anna', NULL"),
        ("PB006", "notification.invalid", "'note', NULL, 'k'"),
        ("PB006", "notification.invalid", "'note', 'anna', 'sesame sesame'"),
        ("PB006", "notification.invalid", "'note', 'anna', 'k', subject => repeat('sesame', 50)"),
        ("PB006", "notification.invalid", "'note', 'anna', 'k', urgency => 'sesame'"),
        ("PB007", "notification.payload_syntax", "'shop', 'anna', 'k', '{\"sesame\": '"),
        ("PB007", "notification.payload_syntax", "'shop', 'anna', 'k', '[\"sesame\"]'"),
        ("PB101", "device.unknown", "'note', 'anna', 'k', device_id => gen_random_uuid()"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `What does not fit the catalog is refused by name and without its value`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SELECT postbell.define_kind('shop', 'template', '{"order": "int!", "word": "slug?",
                    "size": "enum(s,m)?", "at": "timestamp?", "line": "text(8)?", "key": "code?",
                    "who": "uuid?", "gift": "bool?"}',
                    '{"title": "Order {order}", "visible": {"line": null}}');
                SELECT postbell.define_kind('private', 'template', '{}', '{"title": "x"}', producers => '{pg_monitor}');
                CREATE ROLE test_nobody_\(outbox.database.name) LOGIN;
                GRANT postbell_producer TO test_nobody_\(outbox.database.name);
                """)
            let login = "test_nobody_\(outbox.database.name)"
            // As a login of its own: a superuser is a member of every role.
            let producer = try await PostgresConnection.connect(
                PostgresConfiguration(
                    "\(server.connectionString()) dbname=\(outbox.database.name) user=\(login)"),
                on: DatabaseServer.loop)
            for refusal in Self.refusals {
                do {
                    try await producer.execute("SELECT postbell.enqueue(\(refusal.call))")
                    Issue.record("accepted: \(refusal.call)")
                } catch let error as PostgresError {
                    #expect(error.sqlState?.code == refusal.state, "\(refusal.call): \(error)")
                    #expect(error.message.hasPrefix(refusal.code + ": "), "\(error.message)")
                    #expect(!error.message.contains("sesame"), "\(error.message)")
                }
            }
            try await producer.execute(
                #"""
                SELECT postbell.enqueue('shop', 'anna', 'ok', '{"order": -7, "word": "a.b-c_1", "size": "m",
                    "at": "2026-01-01T10:00:00+02:00", "line": "Grüße 🛎", "key": "pub/app:Key-1", "gift": true,
                    "who": "0196F6A1-0000-7000-8000-000000000000"}')
                """#)
            await producer.close()
            try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A kind with a payload key that FCM reserves is refused when it is declared`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            func refusal(_ key: String) async -> String? {
                await outbox.admin.refusal(
                    "SELECT postbell.define_kind('k', 'template', '{\"\(key)\": \"slug?\"}', '{\"title\": \"x\"}')")
            }
            for key in ["from", "message_type", "google", "google.c", "gcm", "gcm.n.e"] {
                #expect(await refusal(key) == "PB201", "\(key)")
            }
            for key in ["from_user", "sender", "message_types", "mygcm", "From"] {
                #expect(await refusal(key) == nil, "\(key)")
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A kind or an instance that is switched off counts and does nothing`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                #"SELECT postbell.define_kind('note', 'template', '{"word": "slug?"}', '{"title": "Note"}', "#
                    + "wait_for_device => '0', enabled => false)")
            #expect(try await outbox.enqueue("a") == ["null"])
            try await outbox.run(
                #"SELECT postbell.define_kind('note', 'template', '{"word": "slug?"}', '{"title": "Note"}', "#
                    + "wait_for_device => '0'); UPDATE postbell.settings SET value = 'off' WHERE name = 'enqueue'")
            #expect(try await outbox.enqueue("a") == ["null"])
            #expect(try await outbox.value("SELECT last_value FROM postbell.discarded_notifications") == "2")
            #expect(try await outbox.places() == [])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.kinds WHERE name = 'note'") == "1")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A deadline that has passed ends the notification at once`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            #expect(try await outbox.enqueue("a", more: "expires_at => now() - interval '1 s'") == ["null"])
            #expect(try await outbox.places() == ["a expired expired"])
        }
    }

    /// S14: also a scheduled one waits for its device.
    @Test(arguments: DatabaseServer.allCases)
    func `Without a device a notification waits, then gets its routes or reaches nobody`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.enqueue("a", to: "early")
            try await outbox.enqueue("b", to: "late")
            try await outbox.enqueue("c", to: "late", more: "not_before => now() + interval '1 h'")
            try await outbox.enqueue("d", to: "late", more: "subject => 's'")
            try await outbox.run("SELECT postbell.supersede('default', 's')")
            // Registered behind the back of device_register, which would have moved the row itself.
            try await outbox.run(
                """
                INSERT INTO postbell.devices (id, principal_id, client_device_id, provider, environment, app, route_no,
                    token, token_seq, token_registered_at)
                VALUES (gen_random_uuid(), 'early', 'phone', 'apns', 'production', 'app.one', 1, 'abcdefgh', 1, now())
                """)
            #expect(try await outbox.worker().resolve() == 3)
            #expect(
                try await outbox.places() == [
                    "a queue", "b dispatched no_device", "c queue", "d superseded superseded",
                ])
            #expect(
                try await outbox.texts("SELECT route_no FROM postbell.queue ORDER BY notification_id") == ["1", "0"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A supersession covers what was enqueued before it, also if that commits later`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let slow = try await outbox.database.connect()
            try await slow.execute("BEGIN")
            try await slow.execute("SELECT postbell.enqueue('note', 'anna', 'a', subject => 's')")
            try await outbox.run("SELECT postbell.supersede('default', 's')")
            try await outbox.enqueue("b", more: "subject => 's'")
            try await outbox.enqueue("c", more: "subject => 'other'")
            try await slow.execute("COMMIT")
            await slow.close()
            let batch = try await outbox.worker().claimed()
            #expect(batch.dispatches.map(\.verdict) == [.superseded, .send, .send])
        }
    }

    /// M12: one awake key per route; producers do not mistake each other for a worker.
    @Test(arguments: DatabaseServer.allCases)
    func `Producers notify only for routes that nobody is awake for`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device(of: "one")
            try await outbox.device(of: "two", route: 2)
            let listener = try await outbox.database.connect()
            try await listener.execute("LISTEN postbell")
            let counter = Counter()
            await listener.whenNotified { _ in counter.add() }
            func notified(after principal: String, _ key: String) async throws -> Int {
                try await outbox.enqueue(key, to: principal)
                try await listener.execute("SELECT 1")
                return counter.take()
            }
            let worker = try await outbox.worker()
            #expect(try await notified(after: "one", "a") == 1)
            _ = try await worker.query(AwakeStatement.command(AwakeStatement.hold, [1]))
            #expect(try await notified(after: "one", "b") == 0)
            #expect(try await notified(after: "two", "c") == 1)
            // Another producer that probes at this moment holds the key SHARED.
            try await outbox.run("SELECT pg_advisory_lock_shared(postbell.awake_class(), 2)")
            #expect(try await notified(after: "two", "d") == 1)
            _ = try await worker.query(AwakeStatement.command(AwakeStatement.release, [1]))
            #expect(try await notified(after: "one", "e") == 1)
            await listener.close()
        }
    }
}
