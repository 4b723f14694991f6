import Glibc
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Wherever a producer's transaction ends: the change and its notifications are both there, or neither is.
@Suite(.timeLimit(.minutes(5)))
struct ProducerCrashTests {
    private static let count = ProducerTransaction.statements.count
    /// The deferred trigger below waits for this advisory lock.
    private static let door = 4711

    private static func on(_ server: DatabaseServer, _ body: (Outbox) async throws -> Void) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(ProducerTransaction.setup)
            try await body(outbox)
        }
    }

    private static func expectNothing(_ outbox: Outbox, _ what: String) async throws {
        #expect(try await outbox.value(ProducerTransaction.state) == ProducerTransaction.nothing, "\(what)")
        #expect(try await outbox.faults() == [], "\(what)")
    }

    private static func expectEverything(_ outbox: Outbox) async throws {
        #expect(try await outbox.value(ProducerTransaction.state) == ProducerTransaction.everything)
        #expect(try await outbox.faults() == [])
    }

    /// A producer, and the process that serves it.
    private static func producer(_ outbox: Outbox) async throws -> (PostgresConnection, backend: String) {
        let producer = try await outbox.database.connect(role: "postbell_producer")
        return (producer, try await producer.texts("SELECT pg_backend_pid()")[0])
    }

    /// Ends a producer's session from the side of the server; it is over when this returns.
    private static func end(_ backend: String, _ outbox: Outbox) async throws {
        #expect(try await outbox.value("SELECT pg_terminate_backend(\(backend), 20000)") == "t")
    }

    private static func waits(_ backend: String, for event: String) -> String {
        "SELECT wait_event FROM pg_stat_activity WHERE pid = \(backend) AND wait_event = '\(event)'"
    }

    // MARK: The server's side ends

    @Test(arguments: DatabaseServer.allCases)
    func `A session that ends after any statement leaves nothing, and one that commits everything`(
        server: DatabaseServer
    ) async throws {
        try await Self.on(server) { outbox in
            for done in 0...Self.count {
                let (producer, backend) = try await Self.producer(outbox)
                try await ProducerTransaction.begin(done, on: producer)
                try await Self.end(backend, outbox)
                try await Self.expectNothing(outbox, "after \(done) statements")
                await producer.close()
            }
            let (producer, _) = try await Self.producer(outbox)
            try await ProducerTransaction.begin(Self.count, on: producer)
            try await Self.expectNothing(outbox, "before the commit")
            try await producer.execute("COMMIT")
            await producer.close()
            try await Self.expectEverything(outbox)
        }
    }

    /// Half of the rows are written when it ends: the next one's key is another transaction's.
    @Test(arguments: DatabaseServer.allCases)
    func `A session that ends in the middle of a bulk insert leaves nothing`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            let (other, _) = try await Self.producer(outbox)
            try await other.execute("BEGIN; SELECT postbell.enqueue('note', 'anna', 'bulk:50')")
            let (producer, backend) = try await Self.producer(outbox)
            try await ProducerTransaction.begin(3, on: producer)
            async let refusal = producer.refusal(ProducerTransaction.bulk)
            try await outbox.admin.expect(Self.waits(backend, for: "transactionid"), "transactionid")
            try await Self.end(backend, outbox)
            #expect(await refusal == "57P01")
            try await other.execute("ROLLBACK")
            try await Self.expectNothing(outbox, "in the middle of a statement")
            for connection in [other, producer] { await connection.close() }
        }
    }

    /// A check of the app's that is deferred to the commit, and waits there.
    private static let gate = """
        CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_advisory_xact_lock_shared(\(door)); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION gate();
        SELECT pg_advisory_lock(\(door))
        """

    @Test(arguments: DatabaseServer.allCases)
    func `A session that ends in the middle of its commit leaves nothing`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.run(Self.gate)
            let (producer, backend) = try await Self.producer(outbox)
            try await ProducerTransaction.begin(Self.count, on: producer)
            async let refusal = producer.refusal("COMMIT")
            try await outbox.admin.expect(Self.waits(backend, for: "advisory"), "advisory")
            try await Self.end(backend, outbox)
            #expect(await refusal == "57P01")
            try await Self.expectNothing(outbox, "in the middle of the commit")
            await producer.close()
        }
    }

    /// PostgreSQL's own rule: NOTIFY belongs to the session that commits.
    @Test func `A transaction that had to wake a worker is not prepared for two phases, and leaves nothing`()
        async throws
    {
        try await Self.on(.postgres15) { outbox in
            let (producer, _) = try await Self.producer(outbox)
            try await ProducerTransaction.begin(Self.count, on: producer)
            #expect(await producer.refusal("PREPARE TRANSACTION 'orders'") == "0A000")
            try await Self.expectNothing(outbox, "after a PREPARE that was refused")
            await producer.close()
        }
    }

    // MARK: The client dies

    private static let doomed = "FROM pg_stat_activity WHERE application_name = 'doomed'"

    /// A psql that did the first statements of the transaction; nobody waits for it.
    private static func client(_ done: Int, _ outbox: Outbox) throws -> PeerProcess {
        let address = try "\(outbox.database.server.connectionString()) dbname=\(outbox.database.name)"
        let client = try PeerProcess(
            "/usr/bin/psql", ["\(address) application_name=doomed", "-qXAt", "-v", "ON_ERROR_STOP=1"])
        for line in ["SET ROLE postbell_producer", "BEGIN"] + ProducerTransaction.statements.prefix(done) {
            try client.write("\(line);")
        }
        return client
    }

    @Test func `A client that is killed after any statement leaves nothing`() async throws {
        try await Self.on(.postgres15) { outbox in
            for done in 0...Self.count {
                let client = try Self.client(done, outbox)
                try client.write(#"\! kill -9 $PPID"#)
                #expect(client.exitStatus() == SIGKILL)
                try await outbox.admin.expect("SELECT count(*) \(Self.doomed)", "0")
                try await Self.expectNothing(outbox, "after \(done) statements")
            }
        }
    }

    /// It never learns that it committed, and does it all again.
    @Test func `A client that is killed in the middle of its commit leaves everything, and its repeat adds nothing`()
        async throws
    {
        try await Self.on(.postgres15) { outbox in
            try await outbox.run(Self.gate)
            let client = try Self.client(Self.count, outbox)
            try client.write("COMMIT;")
            try await outbox.admin.expect("SELECT wait_event \(Self.doomed) AND wait_event = 'advisory'", "advisory")
            client.end()
            try await Self.expectNothing(outbox, "the commit waits")
            try await outbox.run("SELECT pg_advisory_unlock(\(Self.door))")
            try await outbox.admin.expect("SELECT count(*) \(Self.doomed)", "0")
            try await Self.expectEverything(outbox)

            let (producer, _) = try await Self.producer(outbox)
            try await ProducerTransaction.begin(Self.count, on: producer)
            try await producer.execute("COMMIT")
            await producer.close()
            // Facts and events are said again; no row is.
            let twice = ProducerTransaction.everything.replacing("1+1", with: "2+2").replacing(
                "1 noted", with: "2 noted")
            #expect(try await outbox.value(ProducerTransaction.state) == twice)
            #expect(try await outbox.faults() == [])
        }
    }
}
