import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// One key, one notification: however often, by whomever and how badly it is inserted.
@Suite(.timeLimit(.minutes(5)))
struct DedupeTests {
    private static let producers = 50

    /// SplitMix64.
    private struct Generator: RandomNumberGenerator {
        var seed: UInt64

        mutating func next() -> UInt64 {
            seed &+= 0x9E37_79B9_7F4A_7C15
            var mixed = seed
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// What one of the producers does.
    private struct Part {
        let key: String
        let insert: String
        /// How long it stays open after its insert.
        let hold: Duration
        let commits: Bool

        /// All of one round: one of them commits.
        static func all(_ count: Int, key: String, _ random: inout Generator) -> [Part] {
            let survivor = Int.random(in: 0..<count, using: &random)
            return (0..<count).map { place in
                Part(
                    key: key, insert: inserts.randomElement(using: &random) ?? inserts[0],
                    hold: .microseconds(Int.random(in: 0...4000, using: &random)), commits: place == survivor)
            }
        }

        /// KEY stands for the key. All answer the id of the row that they made, if any.
        private static let inserts = [
            "SELECT postbell.enqueue('note', 'anna', 'KEY')", "SELECT postbell.enqueue_or_note('note', 'anna', 'KEY')",
            """
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key) VALUES ('anna', 'note', 'KEY')
            ON CONFLICT DO NOTHING RETURNING id
            """,
            """
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key)
            SELECT 'anna', 'note', 'KEY' FROM generate_series(1, 3) ON CONFLICT DO NOTHING RETURNING id
            """,
        ]

        /// Whether it made a row that it committed.
        func play(on session: PostgresConnection) async throws -> Bool {
            try await session.execute("BEGIN")
            let made = try await session.execute(
                insert.replacing("KEY", with: key), deadline: .now + .seconds(60))
            let isMade = made.rowCount == 1 && !made.isNull(0, 0)
            try await Task.sleep(for: hold)
            try await session.execute(commits ? "COMMIT" : "ROLLBACK")
            return isMade && commits
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Of fifty producers with one key, of which one does not roll back, one row is left`(
        server: DatabaseServer
    ) async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = Generator(seed: seed)
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet", route: 2)
            var sessions: [PostgresConnection] = []
            for _ in 0..<Self.producers {
                sessions.append(try await outbox.database.connect(role: "postbell_producer"))
            }
            for round in 1...5 {
                let parts = Part.all(Self.producers, key: "k\(round)", &random)
                let made = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for (part, session) in zip(parts, sessions) {
                        group.addTask { try await part.play(on: session) }
                    }
                    return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
                }
                #expect(made == 1, "round \(round) of seed \(seed)")
                let left = try await outbox.texts(
                    """
                    SELECT o.dedupe_key || ' ' || string_agg(q.route_no::text, ',' ORDER BY q.route_no)
                    FROM postbell.outbox o JOIN postbell.queue q ON q.notification_id = o.id
                    GROUP BY o.id ORDER BY o.id
                    """)
                #expect(left == (1...round).map { "k\($0) 1,2" }, "round \(round) of seed \(seed)")
                #expect(try await outbox.faults() == [], "round \(round) of seed \(seed)")
            }
            #expect(try await outbox.value("SELECT count(*) FROM postbell.outbox") == "5")
            let noted = try await outbox.texts("SELECT detail FROM postbell.events WHERE name LIKE 'notification.%'")
            #expect(noted == [], "nobody failed, seed \(seed)")
            for session in sessions { await session.close() }
        }
    }

    /// A repeat is a repeat whatever it carries, and whatever became of the first.
    @Test(arguments: DatabaseServer.allCases)
    func `A late repeat is nothing, also after its notification has ended`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", more: "payload => '{\"word\": \"first\"}'")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            try await Self.expectRepeatIsNothing(outbox)
            _ = try await worker.settle(batch.flush(1))
            try await Self.expectRepeatIsNothing(outbox)
            #expect(try await outbox.places() == ["a dispatched"])
        }
    }

    private static func expectRepeatIsNothing(_ outbox: Outbox) async throws {
        for payload in [#"{"word": "second"}"#, #"{"other": 1}"#, #"{"word": 1}"#, "{"] {
            let answer = try await outbox.enqueue("a", to: "berta", more: "payload => '\(payload)'")
            #expect(answer == ["null"], "\(payload)")
        }
        let rows = try await outbox.texts("SELECT principal_id || ' ' || payload FROM postbell.outbox")
        #expect(rows == [#"anna {"word": "first"}"#])
        #expect(try await outbox.value("SELECT count(*) FROM postbell.queue") == "0")
    }

    /// Two tenants that never had anything, each with a login that is confined to it.
    @Test(arguments: DatabaseServer.allCases)
    func `Two tenants with one key both have their row, and neither waits for or hears of the other`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            var sessions: [PostgresConnection] = []
            let logins = ["one", "two"].map { ($0, "test_\($0)_\(outbox.database.name)") }
            for (tenant, login) in logins {
                try await outbox.run(
                    """
                    CREATE ROLE \(login) LOGIN; GRANT postbell_producer TO \(login);
                    INSERT INTO postbell.role_tenants VALUES ('\(login)', '\(tenant)')
                    """)
                let session = try await PostgresConnection.connect(
                    PostgresConfiguration("\(server.connectionString()) dbname=\(outbox.database.name) user=\(login)"),
                    on: DatabaseServer.loop)
                // What waits for anything fails.
                try await session.execute("SET lock_timeout = '1ms'; SET postbell.tenant_id = '\(tenant)'; BEGIN")
                sessions.append(session)
            }
            let insert = """
                INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject) VALUES ('anna', 'note', 'k', 's')
                ON CONFLICT DO NOTHING RETURNING id
                """
            // Both are open when either inserts, and again when either repeats it.
            var answers: [[Int]] = []
            for statement in [insert, insert, "SELECT id FROM postbell.outbox"] {
                var counts: [Int] = []
                for session in sessions { counts.append(try await session.execute(statement).rowCount) }
                answers.append(counts)
            }
            #expect(answers == [[1, 1], [0, 0], [1, 1]])
            for session in sessions { try await session.execute("COMMIT") }
            for session in sessions {
                #expect(try await session.texts("SELECT postbell.enqueue('note', 'anna', 'k')") == ["null"])
                await session.close()
            }
            #expect(
                try await outbox.texts("SELECT tenant_id || ' ' || dedupe_key FROM postbell.outbox ORDER BY 1")
                    == ["one k", "two k"])
            for (_, login) in logins {
                try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)")
            }
        }
    }
}
