import EventLoop
import Postgres
import Support
import Testing

/// A session that keeps itself alive.
@Suite(.timeLimit(.minutes(2)))
struct SessionTests {
    /// Fast enough for a test, and every wait at the lower end of its range.
    private static let backoff = ReconnectBackoff(base: .milliseconds(2), cap: .milliseconds(16))

    private struct Watched: Sendable {
        let session: PostgresSession
        let events = Inbox<PostgresSessionEvent>()

        init(_ configuration: PostgresConfiguration, prepare: PostgresSession.Preparation? = nil) {
            session = PostgresSession(
                configuration, on: TestServer.loop, backoff: SessionTests.backoff, random: { 0 }, prepare: prepare,
                observe: { [events] in events.put($0) })
        }

        func nextLoss() async -> (reason: PostgresError, wait: Duration) {
            while true {
                if case .disconnected(let reason, let wait) = await events.next() { return (reason, wait) }
            }
        }
    }

    private static let backend = PostgresStatement("backend", "SELECT pg_backend_pid()")

    @Test(arguments: TestServer.allCases)
    func `A terminated session comes back and prepares its statements again`(server: TestServer) async throws {
        let watched = try Watched(server.configuration())
        await watched.session.start()
        let first = try await watched.session.query(Self.backend).int4(0, 0)
        let since = await watched.session.healthySince
        try await server.withConnection { try await $0.execute("SELECT pg_terminate_backend(\(first))") }
        let loss = await watched.nextLoss()
        #expect(loss.reason.sqlState == .adminShutdown)
        let second = try await watched.session.query(Self.backend).int4(0, 0)
        #expect(second != first)
        let results = try await watched.session.pipeline([PostgresCommand(Self.backend)])
        #expect(try results[0].get().int4(0, 0) == second)
        let newer = try #require(await watched.session.healthySince)
        #expect(try newer > #require(since))
        await watched.session.stop()
    }

    @Test(arguments: TestServer.allCases)
    func `A statement issued before the session is up waits for it`(server: TestServer) async throws {
        let watched = try Watched(server.configuration())
        async let backend = watched.session.query(Self.backend)
        await watched.session.start()
        #expect(try await backend.int4(0, 0) > 0)
        await watched.session.stop()
        let error = try await postgresError { _ = try await watched.session.query(Self.backend) }
        #expect(error.kind == .closed && !error.mayHaveRun)
    }

    @Test
    func `Without a server a statement fails at its deadline and says why`() async throws {
        let listener = try Listener { _ in }
        listener.stop()
        let watched = try Watched(PostgresConfiguration("host=127.0.0.1 port=\(listener.port) user=nobody"))
        await watched.session.start()
        var waits: [Duration] = []
        for _ in 0..<5 { waits.append(await watched.nextLoss().wait) }
        #expect(waits == [1, 2, 4, 8, 8].map { .milliseconds($0) })
        let error = try await postgresError {
            _ = try await watched.session.query(Self.backend, deadline: .now + .milliseconds(50))
        }
        #expect(error.kind == .connection && error.isTransient && !error.mayHaveRun)
        #expect(error.message.contains("refused"))
        await watched.session.stop()
    }

    @Test(arguments: TestServer.allCases)
    func `A session that ends at once is not made again without a growing wait`(server: TestServer) async throws {
        let watched = try Watched(server.configuration()) { (connection) async throws(PostgresError) in
            try await connection.execute("SELECT 1 / 0", named: "preparation")
        }
        await watched.session.start()
        for milliseconds in [1, 2, 4, 8] {
            let loss = await watched.nextLoss()
            #expect(loss.wait == .milliseconds(milliseconds))
            #expect(loss.reason.sqlState == SQLState("22012"))
        }
        await watched.session.stop()
    }

    @Test(arguments: TestServer.allCases)
    func `A session on a server that became read-only looks for another`(server: TestServer) async throws {
        let watched = try Watched(server.configuration())
        await watched.session.start()
        let first = try await watched.session.query(Self.backend).int4(0, 0)
        try await watched.session.execute("SET default_transaction_read_only = on")
        let error = try await postgresError { try await watched.session.execute("CREATE TABLE public.never ()") }
        #expect(error.sqlState == .readOnlyTransaction)
        _ = await watched.nextLoss()
        #expect(try await watched.session.query(Self.backend).int4(0, 0) != first)
        await watched.session.stop()
    }

    @Test
    func `Each wait lies in the upper half of its ceiling`() {
        let backoff = ReconnectBackoff()
        var ceiling = Duration.milliseconds(100)
        for failures in 1...100 {
            #expect(backoff.delay(afterFailures: failures, random: 0) == ceiling / 2)
            let longest = backoff.delay(afterFailures: failures, random: 0.999_999)
            #expect(longest <= ceiling && longest > ceiling * 0.99)
            ceiling = min(ceiling * 2, .seconds(4))
        }
    }
}
