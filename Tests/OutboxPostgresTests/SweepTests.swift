import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The sweep, row by row: what it ends, how, and what it leaves alone.
@Suite(.timeLimit(.minutes(5)))
struct SweepTests {
    /// What is done to a notification that waits on route 1, and what is left of it after the sweep.
    static let rows: [(made: String, left: String)] = [
        ("", "a queue"),
        (overdue, "a expired expired"),
        // A route is paused where a worker says so, and unserved where none says anything: the deadline passes anyhow.
        ("\(overdue); \(served("up"))", "a expired expired"),
        ("\(overdue); \(served("paused"))", "a expired expired"),
        ("\(served("paused"))", "a queue"),
        ("\(overdue); UPDATE postbell.queue SET due_at = now() + interval '1 h'", "a expired expired"),
        ("\(overdue); UPDATE postbell.queue SET crashes = 3, prior = true, attempt = 2", "a expired expired"),
        (closed, "a cancelled cancelled"),
        ("\(closed); \(overdue)", "a cancelled cancelled"),
        ("SELECT postbell.supersede('default', 's')", "a superseded superseded"),
        ("SELECT postbell.supersede('default', 's'); \(overdue)", "a superseded superseded"),
        ("SELECT postbell.erase('default', 't')", "a cancelled erased"),
        ("SELECT postbell.erase('default', 't'); \(overdue)", "a cancelled erased"),
        ("SELECT postbell.sync('anna', seen => '{s}')", "a superseded seen"),
        (
            "SELECT postbell.sync('anna', seen => '{s}'); SELECT postbell.supersede('default', 's')",
            "a superseded superseded"
        ),
        ("SELECT postbell.erase('default', 'other'); SELECT postbell.supersede('default', 'other')", "a queue"),
        ("DELETE FROM postbell.queue", "a dispatched"),
    ]

    private static let overdue = "UPDATE postbell.outbox SET expires_at = now()"
    private static let closed = "SELECT postbell.cancel(id) FROM postbell.outbox"

    private static func served(_ state: String) -> String {
        """
        INSERT INTO postbell.workers (owner, name, version, routes, lanes) VALUES (gen_random_uuid(), 'w', '1', '{1}',
            '{"apns": {"state": "\(state)", "routes": [1]}}')
        """
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A row that is over ends as what it is, once`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            for (made, left) in Self.rows {
                try await outbox.run("BEGIN; \(made)")
                try await outbox.run("SET LOCAL ROLE postbell_dispatcher")
                let ended = try await Self.sweep(outbox)
                try await outbox.run("RESET ROLE")
                #expect(try await outbox.places() == [left], "\(made)")
                #expect(ended == (left == "a queue" || left == "a dispatched" ? 0 : 1), "\(made)")
                #expect(try await outbox.value("SELECT count(*) < 2 FROM postbell.settlements") == "t", "\(made)")
                #expect(try await Self.sweep(outbox) == 0, "\(made)")
                try await outbox.run("ROLLBACK")
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What somebody holds is left for the next walk`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.run(Self.overdue)
            let worker = try await outbox.worker()
            try await outbox.run("BEGIN; SELECT 1 FROM postbell.queue FOR KEY SHARE")
            #expect(try await worker.sweep() == 0)
            try await outbox.run("COMMIT")
            #expect(try await worker.sweep() == 1)
            #expect(try await outbox.places() == ["a expired expired"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `What is on lease is its holder's to end`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            try await outbox.run("\(Self.overdue); \(Self.closed)")
            #expect(try await worker.sweep() == 0)
            #expect(try await outbox.texts("SELECT place FROM postbell.places") == ["lease"])
            #expect(try await outbox.value("SELECT count(*) FROM postbell.settlements") == "1")
            _ = try await worker.settle(batch.flush(1))
        }
    }

    /// One route's deadline is the other's too; a fact is of the whole notification and told once.
    @Test(arguments: DatabaseServer.allCases)
    func `Each route ends by its deadline, all of them by one fact`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.device("tablet", route: 2)
            try await outbox.enqueue("b", more: "subject => 's'")
            try await outbox.enqueue("c", more: "expires_at => now() + interval '1 h'")
            try await outbox.run(
                """
                SELECT postbell.supersede('default', 's');
                UPDATE postbell.outbox SET expires_at = now() WHERE dedupe_key = 'c'
                """)
            let worker = try await outbox.worker()
            #expect(try await worker.sweep() == 6)
            #expect(
                try await outbox.texts(
                    """
                    SELECT concat_ws(' ', o.dedupe_key, s.route_no, s.status)
                    FROM postbell.settlements s JOIN postbell.outbox o ON o.id = s.notification_id ORDER BY 1
                    """) == ["a superseded", "b superseded", "c 1 expired", "c 2 expired"])
        }
    }

    /// A walk goes in stretches, and its cursor comes back null at the end.
    @Test(arguments: DatabaseServer.allCases)
    func `A walk comes by every row once`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.enqueue("b", "c", "d", "e")
            try await outbox.run("\(Self.overdue) WHERE dedupe_key <> 'b'")
            let worker = try await outbox.worker()
            var cursor: SweepStatement.Cursor? = .start
            var stretches: [Int] = []
            while let place = cursor {
                let (ended, next) = try SweepStatement.answer(
                    await worker.query(SweepStatement.command(after: place, limit: 2)))
                stretches.append(ended)
                cursor = next
            }
            #expect(stretches.reduce(0, +) == 4 && stretches.count == 3)
            #expect(try await outbox.places().filter { $0.hasSuffix("queue") } == ["b queue"])
        }
    }

    /// A notification of subject s and thread t that waits for anna's phone.
    private static func on(_ server: DatabaseServer, _ body: (Outbox) async throws -> Void) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                #"SELECT postbell.define_kind('note', 'template', '{}', '{"title": "x"}', ends_when_seen => true)"#)
            try await outbox.device()
            try await outbox.enqueue("a", more: "subject => 's', thread => 't'")
            try await body(outbox)
        }
    }

    private static func sweep(_ outbox: Outbox) async throws -> Int {
        let command = SweepStatement.command(after: .start, limit: 100)
        return try SweepStatement.answer(await outbox.admin.query(command.statement, command.parameters)).ended
    }
}
