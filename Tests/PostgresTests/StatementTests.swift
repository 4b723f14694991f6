import EventLoop
import Postgres
import Support
import Testing

/// What a connection does with statements, errors, pipelines and deadlines.
@Suite(.timeLimit(.minutes(2)))
struct StatementTests {
    @Test(arguments: TestServer.allCases)
    func `A server's error has its code, its names and not its values`(server: TestServer) async throws {
        try await server.withConnection { connection in
            try await connection.execute(
                """
                CREATE TEMPORARY TABLE account (id int8 CONSTRAINT account_once PRIMARY KEY);
                INSERT INTO account VALUES (4711)
                """)
            let insert = PostgresStatement("again", "INSERT INTO account VALUES ($1)", parameterTypes: [.int8])
            var parameters = PostgresParameters()
            parameters.append(Int64(4711))
            let error = try await postgresError { _ = try await connection.query(insert, parameters) }
            #expect(error.sqlState == .uniqueViolation)
            #expect(error.constraint == "account_once")
            #expect(error.table == "account")
            #expect(error.operation == "again")
            #expect(!error.isTransient && !error.isConnectionFault && !error.mayHaveRun)
            #expect(!error.description.contains("4711"))
            #expect(try await connection.value("SELECT 'usable'") == "usable")
        }
    }

    @Test(arguments: TestServer.allCases)
    func `The offending value of a data exception is left out`(server: TestServer) async throws {
        try await server.withConnection { connection in
            let error = try await postgresError { try await connection.execute("SELECT 'topsecret'::int8") }
            #expect(error.sqlState?.classCode == "22")
            #expect(!error.description.contains("topsecret"))
        }
    }

    @Test(arguments: TestServer.allCases)
    func `Callers at the same time are served one after the other`(server: TestServer) async throws {
        try await server.withConnection { connection in
            let statement = PostgresStatement("echo", "SELECT $1::int8", parameterTypes: [.int8])
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        var parameters = PostgresParameters()
                        parameters.append(Int64(number))
                        return try await connection.query(statement, parameters).int8(0, 0) == Int64(number)
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    @Test(arguments: TestServer.allCases)
    func `A prepared statement survives a change of its table`(server: TestServer) async throws {
        try await server.withConnection { connection in
            try await connection.execute("CREATE TEMPORARY TABLE shape AS SELECT 1::int4 AS a")
            let statement = PostgresStatement("shape", "SELECT * FROM shape")
            #expect(try await connection.query(statement).int4(0, 0) == 1)
            try await connection.execute("ALTER TABLE shape ALTER a TYPE int8")
            #expect(try await connection.query(statement).int8(0, 0) == 1)
            try await connection.execute("DEALLOCATE ALL")
            #expect(try await connection.query(statement).int8(0, 0) == 1)
        }
    }

    @Test(arguments: TestServer.allCases)
    func `Without names the statement leaves nothing on the server`(server: TestServer) async throws {
        var configuration = try server.configuration()
        configuration.preparesStatements = false
        let connection = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        let statement = PostgresStatement("unnamed", "SELECT $1::text", parameterTypes: [.text])
        var parameters = PostgresParameters()
        parameters.append("x")
        #expect(try await connection.query(statement, parameters).text(0, 0) == "x")
        #expect(try await connection.value("SELECT count(*) FROM pg_prepared_statements") == "0")
        let results = try await connection.pipeline([PostgresCommand(statement, parameters)])
        #expect(try results[0].get().text(0, 0) == "x")
        await connection.close()
    }

    @Test(arguments: TestServer.allCases)
    func `An error in the middle of a pipeline touches only its own statement`(server: TestServer) async throws {
        try await server.withConnection { connection in
            let results = try await connection.pipeline(Self.divisions([2, 0, 5]), commit: .each)
            #expect(try results[0].get().int4(0, 0) == 50)
            #expect(results[1].failure?.sqlState == SQLState("22012"))
            #expect(try results[2].get().int4(0, 0) == 20)
            #expect(try await connection.value("SELECT 'usable'") == "usable")
        }
    }

    @Test(arguments: TestServer.allCases)
    func `An error in a pipeline with one commit skips the rest and undoes the first`(server: TestServer) async throws {
        try await server.withConnection { connection in
            try await connection.execute("CREATE TEMPORARY TABLE mark (n int4)")
            let mark = PostgresStatement("mark", "INSERT INTO mark VALUES (1)")
            let commands = [PostgresCommand(mark)] + Self.divisions([0, 5])
            let results = try await connection.pipeline(commands, commit: .atEnd)
            #expect(results[0].failure == nil)
            #expect(results[1].failure?.sqlState == SQLState("22012"))
            #expect(results[2].failure?.kind == .skipped)
            #expect(try await connection.value("SELECT count(*) FROM mark") == "0")
        }
    }

    @Test(arguments: TestServer.allCases)
    func `A pipeline larger than the socket's buffers does not lock up`(server: TestServer) async throws {
        try await server.withConnection { connection in
            let statement = PostgresStatement("long", "SELECT $1::text, repeat('y', 4096)", parameterTypes: [.text])
            var parameters = PostgresParameters()
            parameters.append(String(repeating: "x", count: 4096))
            let commands = [PostgresCommand](repeating: PostgresCommand(statement, parameters), count: 2000)
            let results = try await connection.pipeline(commands, commit: .atEnd)
            #expect(results.count == 2000)
            #expect(results.allSatisfy { $0.failure == nil })
        }
    }

    @Test(arguments: TestServer.allCases)
    func `At its deadline a statement is cancelled on the server and the session stays`(
        server: TestServer
    ) async throws {
        var configuration = try server.configuration()
        configuration.cancelGrace = .seconds(60)
        let connection = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        let backend = try await connection.value("SELECT pg_backend_pid()")
        let sleep = PostgresStatement("sleep", "SELECT pg_sleep(600)")
        let error = try await postgresError {
            _ = try await connection.query(sleep, deadline: .now + .milliseconds(100))
        }
        #expect(error.kind == .deadline)
        #expect(error.isTransient && !error.isConnectionFault)
        #expect(try await connection.value("SELECT pg_backend_pid()") == backend)
        try await server.withConnection { other in
            let running = "SELECT count(*) FROM pg_stat_activity WHERE pid = \(backend) AND state = 'active'"
            let count = try await other.value(running)
            #expect(count == "0")
        }
        await connection.close()
    }

    @Test(arguments: TestServer.allCases)
    func `A server that does not obey a cancel request loses the connection`(server: TestServer) async throws {
        let proxy = try Proxy(to: server.socketPath())
        var configuration = try server.configuration(adding: "host=127.0.0.1 port=\(proxy.port)")
        configuration.cancelGrace = .milliseconds(50)
        let connection = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        proxy.freeze()
        let error = try await postgresError {
            try await connection.execute("SELECT 1", deadline: .now + .milliseconds(50))
        }
        #expect(error.kind == .deadline && error.mayHaveRun)
        #expect(error.message.contains("dropped"))
        #expect(await !connection.isOpen)
        proxy.thaw()
        proxy.stop()
    }

    @Test(arguments: TestServer.allCases)
    func `A caller that waits for its turn gives up at its deadline, and too many are refused`(
        server: TestServer
    ) async throws {
        var configuration = try server.configuration()
        configuration.queueLimit = 1
        let connection = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        let kinds = try await withThrowingTaskGroup(of: PostgresError.Kind.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    try await postgresError {
                        try await connection.execute("SELECT pg_sleep(600)", deadline: .now + .seconds(1))
                    }.kind
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(kinds.count(where: { $0 == .overloaded }) == 1)
        #expect(kinds.count(where: { $0 == .deadline }) == 2)
        #expect(try await connection.value("SELECT 'usable'") == "usable")
        await connection.close()
    }

    @Test(arguments: TestServer.allCases)
    func `A statement whose backend is terminated may have run, and the connection is over`(
        server: TestServer
    ) async throws {
        let connection = try await server.connect()
        let backend = try await connection.value("SELECT pg_backend_pid()")
        async let slept = postgresError { try await connection.execute("SELECT pg_sleep(60)", named: "sleep") }
        try await server.withConnection { other in
            try await other.execute(
                """
                DO $$ BEGIN
                  WHILE NOT (SELECT state = 'active' FROM pg_stat_activity WHERE pid = \(backend)) LOOP
                    PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot();
                  END LOOP;
                  PERFORM pg_terminate_backend(\(backend));
                END $$
                """)
        }
        let error = try await slept
        #expect(error.sqlState == .adminShutdown, "\(error)")
        #expect(error.isConnectionFault && error.isTransient && error.mayHaveRun)
        let after = try await postgresError { try await connection.execute("SELECT 1") }
        #expect(after.isConnectionFault && !after.mayHaveRun)
    }

    private static func divisions(_ divisors: [Int32]) -> [PostgresCommand] {
        let statement = PostgresStatement("divide", "SELECT 100 / $1::int4", parameterTypes: [.int4])
        return divisors.map { divisor in
            var parameters = PostgresParameters()
            parameters.append(divisor)
            return PostgresCommand(statement, parameters)
        }
    }
}

extension Result {
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
