import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The server itself stops and crashes: what a producer's transaction leaves, and what is the same afterwards.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ServerCrashTests {
    /// The server crashes and starts again, with a session of the superuser on either side.
    private static func crash(_ server: PrivateServer) async throws -> PostgresConnection {
        try await server.stop(.immediate)
        try await server.start()
        return try await server.connect()
    }

    private static func state(_ admin: PostgresConnection) async throws -> [String] {
        try await admin.texts(ProducerTransaction.state) + admin.texts(ProducerTransaction.audit)
    }

    @Test func `A server that crashes leaves a transaction as a whole or not at all`() async throws {
        try await PrivateServer.migrated(beside: .postgres15) { server in
            var admin = try await server.connect()
            try await admin.execute(ProducerTransaction.setup)
            let open = try await server.connect(role: "postbell_producer")
            try await ProducerTransaction.begin(ProducerTransaction.statements.count, on: open)
            admin = try await Self.crash(server)
            #expect(try await Self.state(admin) == [ProducerTransaction.nothing])

            // The commit is written down, and its answer waits for a standby that never comes.
            try await admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
            try await admin.execute("SELECT pg_reload_conf()")
            let committed = try await server.connect(role: "postbell_producer")
            try await committed.expect("SHOW synchronous_standby_names", "nobody")
            try await ProducerTransaction.begin(ProducerTransaction.statements.count, on: committed)
            async let refusal = committed.refusal("COMMIT")
            try await admin.expect(
                "SELECT wait_event FROM pg_stat_activity WHERE wait_event = 'SyncRep'", "SyncRep")
            admin = try await Self.crash(server)
            #expect(await refusal != nil, "nobody was told that it committed")
            #expect(try await Self.state(admin) == [ProducerTransaction.everything])
            await admin.close()
        }
    }

    /// Producers commit as fast as they can; what was acknowledged is there, and of the rest either both or neither.
    @Test func `A server that crashes among many producers leaves no change without its notification`() async throws {
        try await PrivateServer.migrated(beside: .postgres15) { server in
            var admin = try await server.connect()
            try await admin.execute(ProducerTransaction.setup)
            let acknowledged = try await withThrowingTaskGroup(of: [Int].self) { group in
                for producer in 1...8 {
                    let session = try await server.connect(role: "postbell_producer")
                    group.addTask { await Self.orders(of: producer, session) }
                }
                try await admin.expect("SELECT count(*) > 400 FROM orders", "t")
                admin = try await Self.crash(server)
                return try await group.reduce(into: []) { $0 += $1 }
            }
            let orders = try await admin.texts("SELECT id FROM orders WHERE id > 10000")
            let announced = try await admin.texts(
                "SELECT substr(dedupe_key, 7) FROM postbell.outbox WHERE dedupe_key LIKE 'order:%'")
            #expect(Set(orders) == Set(announced))
            #expect(acknowledged.count >= 390)
            #expect(Set(acknowledged.map { "\($0)" }).subtracting(orders) == [], "committed, said the server")
            #expect(try await admin.texts(ProducerTransaction.audit) == [])
            await admin.close()
        }
    }

    /// The orders of a producer that were acknowledged before its session ended.
    private static func orders(of producer: Int, _ session: PostgresConnection) async -> [Int] {
        var acknowledged: [Int] = []
        for order in (1...10_000).map({ producer * 10_000 + $0 }) {
            do { try await Self.order(order, session) } catch { break }
            acknowledged.append(order)
        }
        return acknowledged
    }

    private static func order(_ order: Int, _ session: PostgresConnection) async throws {
        try await session.execute("BEGIN")
        try await session.execute("INSERT INTO orders VALUES (\(order), 'new')")
        try await session.execute("SELECT postbell.enqueue('note', 'anna', 'order:\(order)')")
        try await session.execute("COMMIT")
    }

    @Test func `The mapping is the same after a restart and after a crash of the server`() async throws {
        try await PrivateServer.migrated(beside: .postgres15) { server in
            var admin = try await server.connect()
            try await admin.execute(
                #"""
                CREATE ROLE publisher; GRANT postbell_producer TO publisher;
                SELECT postbell.assign_namespace('publisher', 'acme/mail');
                SET ROLE publisher;
                SELECT postbell.install_codes('{"b": {"title": "Ü"}, "B": {"title": "x", "route": "r/{id}"}}');
                RESET ROLE
                """#)
            let mapping = "SELECT postbell.mapping()::text"
            let before = try await admin.texts(mapping)
            for stop in [PrivateServer.Stop.fast, .immediate] {
                await admin.close()
                try await server.stop(stop)
                try await server.start()
                admin = try await server.connect()
                #expect(try await admin.texts(mapping) == before, "\(stop)")
            }
            try await admin.execute("SET ROLE publisher; SELECT postbell.install_codes('{\"b\": {\"title\": \"Ü\"}}')")
            #expect(try await admin.texts(mapping) != before)
            await admin.close()
        }
    }
}
