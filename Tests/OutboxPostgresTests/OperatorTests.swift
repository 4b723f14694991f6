import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What operators do to a notification, and how a producer enqueues that must not fail.
@Suite(.timeLimit(.minutes(5)))
struct OperatorTests {
    private static let status = "SELECT concat_ws(' ', status, reason) FROM postbell.notifications"
    private static let names = "SELECT name FROM postbell.events WHERE name LIKE 'notification.%' ORDER BY id"

    // MARK: Cancel

    @Test(arguments: DatabaseServer.allCases)
    func `A cancelled notification ends wherever it is`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let ids = try await outbox.enqueue("a", "b")
            let worker = try await outbox.worker()
            let held = try await worker.claimed(1)
            let people = try await outbox.database.connect(role: "postbell_operator")
            for id in ids {
                #expect(try await people.texts("SELECT postbell.cancel('\(id)')") == ["t"])
                #expect(try await people.texts("SELECT postbell.cancel('\(id)')") == ["f"], "it has ended")
            }
            #expect(try await outbox.texts(Self.status) == ["cancelled cancelled", "cancelled cancelled"])
            #expect(try await worker.recheck(held) == [.cancelled])
            var flush = held.flush(1, outcome: Outcome(.skipped, reason: "cancelled"))
            flush.ends = [
                PositionEnd(position: 1, status: .cancelled, reason: .cancelled, wholeNotification: true)
            ]
            _ = try await worker.settle(flush)
            let closed = try await worker.claimed()
            #expect(closed.dispatches.map(\.verdict) == [.closed])
            _ = try await worker.settle(closed.flush(1))
            #expect(try await outbox.texts(Self.status) == ["cancelled cancelled", "cancelled cancelled"])
            #expect(try await outbox.texts(Self.names) == ["notification.cancelled", "notification.cancelled"])
            #expect(
                try await outbox.texts("SELECT detail ->> 'by' FROM postbell.events WHERE name LIKE 'not%' LIMIT 1")
                    == outbox.texts("SELECT current_user"))
            await people.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What has ended cannot be cancelled`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let id = try await outbox.enqueue("a")[0]
            let worker = try await outbox.worker()
            _ = try await worker.settle(worker.claimed().flush(1))
            #expect(try await outbox.value("SELECT postbell.cancel('\(id)')") == "f")
            #expect(try await outbox.value(Self.status) == "dispatched")
            #expect(try await outbox.texts(Self.names) == [])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A cancellation and a worker do not wait for one another`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let ids = try await outbox.enqueue("a", "b")
            let worker = try await outbox.worker()
            let held = try await worker.claimed(1)
            try await outbox.run("SET lock_timeout = '100 ms'; BEGIN; SELECT postbell.cancel('\(ids[0])')")
            // The lease holder's own end of the same notification, with the cancellation not committed.
            var flush = held.flush(1)
            flush.ends = [
                PositionEnd(position: 1, status: .superseded, reason: .superseded, wholeNotification: true)
            ]
            #expect(try await worker.settle(flush).owned)
            try await outbox.run("COMMIT")
            try await worker.connection.execute("BEGIN")
            let second = try await worker.claimed(1)
            #expect(try await outbox.value("SELECT postbell.cancel('\(ids[1])')") == "t")
            _ = try await worker.settle(second.flush(1))
            try await worker.connection.execute("COMMIT")
        }
    }

    // MARK: Requeue

    @Test(arguments: DatabaseServer.allCases)
    func `What has ended is enqueued anew, once, with a new deadline`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            let id = try await outbox.enqueue(
                "a",
                more: """
                    payload => '{"word": "tea"}', subject => 's', thread => 't', urgency => 'urgent', badge => 2,
                    silent => true, device_id => (SELECT id FROM postbell.devices WHERE client_device_id = 'tablet')
                    """)[0]
            let worker = try await outbox.worker()
            _ = try await worker.settle(worker.claimed().flush(1))
            let people = try await outbox.database.connect(role: "postbell_operator")
            let made = try await people.texts("SELECT postbell.requeue('\(id)')")
            #expect(try await people.texts("SELECT postbell.requeue('\(id)')") == made, "a repeat answers the same")
            #expect(
                try await outbox.value("SELECT predecessor FROM postbell.notifications WHERE place = 'queue'") == id)
            #expect(
                try await outbox.value(
                    """
                    SELECT count(DISTINCT (principal_id, kind, payload, subject, thread, urgency, collapse_key, badge,
                        silent, device_no)) FROM postbell.outbox
                    """) == "1")
            let batch = try await worker.claimed()
            #expect(batch.devices == [[2]], "the ledger of the first is not in its way")
            #expect(batch.dispatches[0].expiresAt - batch.dispatches[0].createdAt == .seconds(86_400))
            _ = try await worker.settle(batch.flush(1))
            #expect(try await outbox.places() == ["a dispatched", "requeue:\(id) dispatched"])
            // The second one can be enqueued anew as well, with a deadline of the operator's.
            let third = try await people.texts(
                "SELECT postbell.requeue('\(made[0])', now() + interval '1 h') IS NOT NULL")
            #expect(third == ["t"])
            #expect(
                try await outbox.texts(Self.names) == ["notification.requeued", "notification.requeued"])
            #expect(
                try await outbox.texts(
                    "SELECT detail ->> 'successor' FROM postbell.events WHERE name = 'notification.requeued' LIMIT 1")
                    == made)
            await people.close()
        }
    }

    /// What the test does to the notification, and the SQLSTATE of requeueing it; nil when it is not refused.
    static let requeues: [(made: String, refusal: String?)] = [
        ("", "PB009"),
        ("SELECT postbell.cancel(id) FROM postbell.outbox; DELETE FROM postbell.queue", nil),
        ("SELECT postbell.supersede('default', 's'); DELETE FROM postbell.queue", "PB009"),
        ("SELECT postbell.erase('default', 't'); DELETE FROM postbell.queue", "PB009"),
        ("SELECT postbell.sync('anna', seen => '{s}'); DELETE FROM postbell.queue", "PB009"),
    ]

    static let requeueCases = DatabaseServer.allCases.flatMap { server in requeues.indices.map { (server, $0) } }

    @Test(arguments: requeueCases)
    func `What is open, or has a fact against it, is not enqueued anew`(
        server: DatabaseServer, index: Int
    ) async throws {
        let (made, refusal) = Self.requeues[index]
        try await Outbox.on(server, audited: false) { outbox in
            try await outbox.run(
                #"SELECT postbell.define_kind('note', 'template', '{}', '{"title": "x"}', ends_when_seen => true)"#)
            try await outbox.device()
            let id = try await outbox.enqueue("a", more: "subject => 's', thread => 't'")[0]
            try await outbox.run(made)
            #expect(await outbox.admin.refusal("SELECT postbell.requeue('\(id)')") == refusal)
        }
    }

    /// S8: the second call waits for the first, and then sees what it made.
    @Test(arguments: DatabaseServer.allCases)
    func `Two calls at once make one notification`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            let id = try await outbox.enqueue("a")[0]
            let worker = try await outbox.worker()
            _ = try await worker.settle(worker.claimed().flush(1))
            try await outbox.run("BEGIN")
            let first = try await outbox.value("SELECT postbell.requeue('\(id)')")
            let other = try await outbox.database.connect(role: "postbell_operator")
            async let second = other.texts("SELECT postbell.requeue('\(id)')")
            let watcher = try await outbox.database.connect()
            while try await watcher.texts("SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"] {}
            try await outbox.run("COMMIT")
            #expect(try await second == [first])
            await other.close()
            await watcher.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A kind that is limited to producers is enqueued anew all the same`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let role = "test_producer_\(outbox.database.name)"
            try await outbox.run(
                """
                CREATE ROLE \(role);
                SELECT postbell.define_kind('note', 'template', '{}', '{"title": "x"}', wait_for_device => '0',
                    producers => '{\(role)}')
                """)
            let id = try await outbox.enqueue("a")[0]
            _ = try await outbox.worker().resolve()
            let login = "test_login_\(outbox.database.name)"
            try await outbox.run("CREATE ROLE \(login) LOGIN; GRANT postbell_operator TO \(login)")
            let people = try await PostgresConnection.connect(
                PostgresConfiguration(
                    "\(server.connectionString()) dbname=\(outbox.database.name) user=\(login)"),
                on: DatabaseServer.loop)
            #expect(try await people.texts("SELECT postbell.requeue('\(id)') IS NOT NULL") == ["t"])
            await people.close()
            try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login); DROP ROLE \(role)")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `An operator acts for the tenant that was named`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let id = try await outbox.enqueue("a")[0]
            let people = try await outbox.database.connect(role: "postbell_operator")
            try await people.execute("SET postbell.tenant_id = 'other'")
            for call in ["cancel('\(id)')", "requeue('\(id)')", "cancel(gen_random_uuid())", "requeue(NULL)"] {
                #expect(await people.refusal("SELECT postbell.\(call)") == "PB008", "\(call)")
            }
            try await people.execute("RESET postbell.tenant_id")
            #expect(try await people.texts("SELECT postbell.cancel('\(id)')") == ["t"])
            await people.close()
            for role in ["postbell_reader", "postbell_producer", "postbell_registrar", "postbell_dispatcher"] {
                let other = try await outbox.database.connect(role: role)
                for call in ["cancel('\(id)')", "requeue('\(id)')"] {
                    #expect(await other.refusal("SELECT postbell.\(call)") == "42501", "\(role): \(call)")
                }
                await other.close()
            }
            #expect(try await outbox.worker().resolve() == 1)
        }
    }

    // MARK: Producers that must not fail

    @Test(arguments: DatabaseServer.allCases)
    func `A refused enqueue is noted without its content`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let producer = try await outbox.database.connect(role: "postbell_producer")
            try await producer.execute("BEGIN")
            for arguments in [
                #"'note', 'anna', 'a', '{"word": "Open sesame"}'"#, "'sesame', 'anna', 'b'",
                "'note', 'open sesame', 'c'", "'note', 'anna', 'd', tenant_id => 'sesame'", "'note', NULL, NULL",
            ] {
                #expect(
                    try await producer.texts("SELECT postbell.enqueue_or_note(\(arguments))") == ["null"],
                    "\(arguments)")
            }
            #expect(try await producer.texts("SELECT postbell.enqueue_or_note('note', 'anna', 'e') IS NULL") == ["f"])
            try await producer.execute("COMMIT")
            #expect(try await outbox.texts("SELECT dedupe_key FROM postbell.outbox") == ["e"])
            #expect(
                try await outbox.texts(
                    """
                    SELECT concat_ws(' ', tenant_id, principal_id, detail ->> 'kind', detail ->> 'sqlstate',
                        detail ->> 'code')
                    FROM postbell.events WHERE name = 'notification.enqueue_failed' ORDER BY id
                    """) == [
                        "default anna note PB003 notification.payload_type",
                        "default anna PB001 notification.unknown_kind", "default note PB006 notification.invalid",
                        "default anna note 42501", "default note PB006 notification.invalid",
                    ])
            #expect(
                try await outbox.texts("SELECT 1 FROM postbell.events e WHERE e::text LIKE '%sesame%'") == [])
            await producer.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Nothing that a producer says comes into the note`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let login = "test_login_\(outbox.database.name)"
            try await outbox.run(
                """
                CREATE ROLE \(login) LOGIN; GRANT postbell_producer TO \(login);
                INSERT INTO postbell.role_tenants VALUES ('\(login)', 'mine')
                """)
            let confined = try await PostgresConnection.connect(
                PostgresConfiguration(
                    "\(server.connectionString()) dbname=\(outbox.database.name) user=\(login)"),
                on: DatabaseServer.loop)
            #expect(try await confined.texts("SELECT postbell.enqueue_or_note('note', 'anna', 'a')") == ["null"])
            try await confined.execute(
                "SELECT postbell.note_enqueue_failure('open sesame', 'sesame', 'sesame', 'sesame.sesame: sesame')")
            #expect(
                try await outbox.texts("SELECT tenant_id || ' ' || detail FROM postbell.events ORDER BY id") == [
                    #"mine {"code": "notification.not_permitted", "kind": "note", "sqlstate": "PB005"}"#, "mine {}",
                ])
            await confined.close()
            try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
        }
    }
}
