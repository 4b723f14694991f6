import EventLoop
import Foundation
import Glibc
import Postgres
import Support
import Testing

/// How connecting fails, and what is said about it.
@Suite(.timeLimit(.minutes(2)))
struct ConnectTests {
    @Test
    func `A refused connection is a connection fault`() async throws {
        let listener = try Listener { _ in }
        listener.stop()
        let error = try await failure("host=127.0.0.1 port=\(listener.port) user=nobody password=s3cret")
        #expect(error.kind == .connection)
        #expect(error.operation == "connect")
        #expect(error.message.contains("refused"))
        #expect(!error.description.contains("s3cret"))
    }

    @Test
    func `An attempt that fails at once does not leave its caller waiting`() async throws {
        for _ in 0..<50 {
            let error = try await failure("host=/nonexistent user=nobody")
            #expect(error.kind == .connection)
        }
    }

    @Test
    func `A wrong password is told by its code, and is not repeated`() async throws {
        let listener = try Listener { client in
            answerStartup(client, severity: "FATAL", state: "28P01", message: "password authentication failed")
        }
        let error = try await failure("postgresql://nobody:s3cret@127.0.0.1:\(listener.port)/x?sslmode=disable")
        #expect(error.sqlState == .invalidPassword, "\(error)")
        #expect(error.message.contains("password authentication failed"))
        #expect(!error.message.contains("28P01") && !error.message.contains("LOCATION"))
        #expect(!error.description.contains("s3cret"))
        #expect(!error.isTransient && !error.isConnectionFault)
        listener.stop()
    }

    @Test
    func `A server without a free connection is waited out`() async throws {
        let listener = try Listener { client in
            answerStartup(client, severity: "FATAL", state: "53300", message: "sorry, too many clients already")
        }
        let error = try await failure("host=127.0.0.1 port=\(listener.port) user=nobody sslmode=disable")
        #expect(error.sqlState == .tooManyConnections)
        #expect(error.isTransient)
        listener.stop()
    }

    @Test
    func `A server that accepts and says nothing costs the connect timeout`() async throws {
        let listener = try Listener { _ in }
        var configuration = try PostgresConfiguration("host=127.0.0.1 port=\(listener.port) user=nobody")
        configuration.connectTimeout = .milliseconds(50)
        let error = try await postgresError {
            _ = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        }
        #expect(error.kind == .deadline)
        #expect(error.operation == "connect")
        listener.stop()
    }

    @Test
    func `A host that does not exist is a connection fault`() async throws {
        let error = try await failure("host='no such host' user=nobody password=s3cret")
        #expect(error.kind == .connection)
        #expect(error.message.contains("no such host"))
        #expect(!error.description.contains("s3cret"))
    }

    @Test(arguments: TestServer.allCases)
    func `A missing database and a missing role are told by their codes`(server: TestServer) async throws {
        let database = try await failure(server.connectionString() + " dbname=missing_database")
        #expect(database.sqlState == .undefinedDatabase)
        let role = try await failure(server.connectionString() + " user=missing_role")
        #expect(role.sqlState?.classCode == "28")
    }

    @Test(arguments: TestServer.allCases)
    func `Of several hosts the first one that answers is taken`(server: TestServer) async throws {
        let listener = try Listener { _ in }
        listener.stop()
        let path = try server.socketPath()
        let folder = path.split(separator: "/").dropLast().joined(separator: "/")
        let port = path.split(separator: ".").last ?? ""
        let configuration = try PostgresConfiguration(
            "host=127.0.0.1,/\(folder) port=\(listener.port),\(port) user=postgres dbname=postgres"
                + " target_session_attrs=read-write")
        let connection = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        #expect(try await connection.value("SELECT current_user") == "postgres")
        await connection.close()
    }

    @Test(arguments: TestServer.allCases)
    func `Settings hold from the first statement on, and the text is UTF-8`(server: TestServer) async throws {
        var configuration = try server.configuration(adding: "client_encoding=LATIN1")
        configuration.settings = [
            (name: "enable_seqscan", value: "off"), (name: "TimeZone", value: "UTC"),
            (name: "statement_timeout", value: "12s"), (name: "app.note", value: "it's \"quoted\""),
        ]
        configuration.applicationName = "settings test"
        let connection = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        #expect(try await connection.value("SHOW enable_seqscan") == "off")
        #expect(try await connection.value("SHOW TimeZone") == "UTC")
        #expect(try await connection.value("SHOW statement_timeout") == "12s")
        #expect(try await connection.value("SHOW app.note") == "it's \"quoted\"")
        #expect(try await connection.value("SHOW application_name") == "settings test")
        #expect(try await connection.value("SELECT 'ß'") == "ß")
        await connection.close()
    }

    @Test(arguments: TestServer.allCases)
    func `A wrong setting is an error of connecting`(server: TestServer) async throws {
        var configuration = try server.configuration()
        configuration.settings = [(name: "no_such_setting", value: "1")]
        let error = try await postgresError {
            _ = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        }
        #expect(error.sqlState == SQLState("42704"))
        #expect(error.operation == "connect")
    }

    @Test(arguments: TestServer.allCases)
    func `A read-only server is refused unless it is accepted`(server: TestServer) async throws {
        var configuration = try server.configuration(adding: "options='-c default_transaction_read_only=on'")
        let error = try await postgresError {
            _ = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        }
        #expect(error.kind == .recovery)
        #expect(error.isTransient && error.isConnectionFault)
        configuration.acceptsReadOnly = true
        let connection = try await PostgresConnection.connect(configuration, on: TestServer.loop)
        #expect(await connection.isOpen)
        await connection.close()
    }

    @Test(arguments: TestServer.allCases)
    func `A server in recovery is refused`(server: TestServer) async throws {
        let standby = try await Standby.start(beside: server)
        var configuration = try PostgresConfiguration(standby.connectionString)
        configuration.connectTimeout = .seconds(60)
        // Until the server is up it answers 57P03 or refuses.
        var error: PostgresError
        repeat {
            error = try await postgresError {
                _ = try await PostgresConnection.connect(configuration, on: TestServer.loop)
            }
            if error.kind != .recovery { try await Task.sleep(for: .milliseconds(20)) }
        } while error.kind == .connection || error.sqlState == .cannotConnectNow
        #expect(error.kind == .recovery)
        #expect(error.message.contains("recovery"))
        try await standby.stop()
    }

    @Test(arguments: [
        "postgresql://user:s3cret@[::1/x", "postgresql://user:a\"s3cret@[::1/x",
        "password=s3cret nonsense=1", "password='s3cret", "s3cret",
        "host=x password s3cret",
        // An @ or a slash in a password that is not written as %40 or %2F makes it part of the host or the database.
        "postgresql://user:hidden@s3cret@db.example/x", "postgresql://user:1/s3cret@db.example/x",
        "postgresql://user:hidden@s3cret@db.example/x?sslmode=require",
    ])
    func `A connection string that cannot be read is not repeated`(text: String) throws {
        do {
            _ = try PostgresConfiguration(text)
            Issue.record("\(text) was accepted")
        } catch {
            #expect(error.kind == .configuration)
            #expect(!error.description.contains("s3cret"))
        }
    }

    /// libpq finds these out only when it connects, or between two of the servers it tries.
    @Test(arguments: [
        ("sslmode=s3cret", "invalid sslmode value"), ("port=s3cret", "option \"port\""),
        ("port=99999", "invalid port number"), ("hostaddr=s3cret", "could not parse network address"),
        ("host=a,b port=1,2,3", "could not match 3 port numbers to 2 hosts"),
        ("target_session_attrs=s3cret", "invalid target_session_attrs value"),
        ("service=s3cret", "definition of service"), ("ssl_min_protocol_version=s3cret", "invalid ssl_min_protocol"),
        ("host=127.0.0.1 port=1 keepalives=s3cret", "option \"keepalives\""),
        (
            "host=127.0.0.1 port=1 tcp_user_timeout='s3cret\" for connection option \"s3cret'",
            "option \"tcp_user_timeout\""
        ),
        ("host=/\(String(repeating: "s3cret", count: 30))", "is too long"),
    ])
    func `A parameter that libpq cannot use is a configuration fault, and its value is not repeated`(
        text: String, reason: String
    ) async throws {
        let error = try await failure(text + " user=nobody")
        #expect(error.kind == .configuration)
        #expect(error.message.contains(reason), "\(error)")
        #expect(!error.description.contains("s3cret"), "\(error)")
        #expect(!error.isConnectionFault && !error.isTransient)
    }

    @Test
    func `An at sign within the parameters of a URI is allowed`() throws {
        let configuration = try PostgresConfiguration("postgresql://db.example/x?user=worker@server")
        #expect(configuration.description == "host=db.example dbname=x user=worker@server")
    }

    @Test
    func `A configuration prints where it leads, not how it gets in`() throws {
        let configuration = try PostgresConfiguration("postgresql://worker:s3cret@db.example:5433/app?sslmode=require")
        #expect(configuration.description == "host=db.example port=5433 dbname=app user=worker")
        #expect(!String(reflecting: configuration).contains("s3cret"))
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("s3cret"))
    }

    private func failure(_ text: String) async throws -> PostgresError {
        try await postgresError {
            _ = try await PostgresConnection.connect(PostgresConfiguration(text), on: TestServer.loop)
        }
    }
}

/// Reads a start-up message and answers it with an error, as a server does (protocol 3, message `E`).
private func answerStartup(_ client: Int32, severity: String, state: String, message: String) {
    var buffer = [UInt8](repeating: 0, count: 4096)
    guard read(client, &buffer, buffer.count) > 0 else { return }
    var fields: [UInt8] = []
    for (tag, value) in [("S", severity), ("V", severity), ("C", state), ("M", message), ("F", "auth.c"), ("L", "1")] {
        fields += Array(tag.utf8) + Array(value.utf8) + [0]
    }
    fields.append(0)
    let length = UInt32(fields.count + 4)
    let report = [UInt8(ascii: "E")] + withUnsafeBytes(of: length.bigEndian) { Array($0) } + fields
    _ = write(client, report, report.count)
    close(client)
}

/// A cluster of its own in recovery, made by the server under test with its own programs and its own user.
private struct Standby {
    let folder: String
    let connectionString: String
    let server: TestServer

    static func start(beside server: TestServer) async throws -> Standby {
        let connection = try await server.connect()
        let programs = try await connection.value("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
        let folder = "/tmp/postbell-standby-\(UInt32.random(in: 0...UInt32.max))"
        let cluster = "\(folder)/data"
        // The server ends by itself after a minute, should the test not come to stop it.
        let script = """
            mkdir -m 755 \(folder) && unset LC_ALL LANG; \
            \(programs)/initdb -D \(cluster) -U postgres -A trust -E UTF8 --locale=C --no-sync \
            >\(folder)/initdb.log 2>&1 && \
            touch \(cluster)/standby.signal && \
            (timeout 60 \(programs)/postgres -D \(cluster) -k \(folder) -p 5432 -c listen_addresses= -c fsync=off \
            -c shared_buffers=16MB >\(folder)/log 2>&1 </dev/null &)
            """
        try await connection.execute(
            "COPY (SELECT 1) TO PROGRAM $script$\(script)$script$", deadline: .now + .seconds(60))
        await connection.close()
        return Standby(
            folder: folder, connectionString: "host=\(folder) port=5432 user=postgres dbname=postgres", server: server)
    }

    func stop() async throws {
        try await server.withConnection { connection in
            let script = "kill -QUIT $(head -1 \(folder)/data/postmaster.pid); sleep 0.2; rm -rf \(folder)"
            try await connection.execute("COPY (SELECT 1) TO PROGRAM $script$\(script)$script$")
        }
    }
}
