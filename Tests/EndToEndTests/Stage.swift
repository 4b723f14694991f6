import EventLoop
import FakeProviders
import Foundation
import Postgres
import Support
import Testing

/// A database, a fake Apple, and workers beside them: what a test of the whole needs.
struct Stage {
    static let topic = "com.example.app"
    static let keyID = "ABC123DEFG"
    static let teamID = "TEAM123456"

    let database: TemporaryDatabase
    let connection: PostgresConnection
    let apns: FakeAPNS
    let directory: URL
    private let environment: [String: String]

    /// Runs `body` on a stage of its own and takes it down afterwards. `keyMatches` false gives the fake another key
    /// than the workers have.
    static func on(
        _ server: DatabaseServer, keyMatches: Bool = true,
        configure: (inout FakeAPNSConfiguration) -> Void = { _ in }, _ body: (Stage) async throws -> Void
    ) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            let directory = FileManager.default.temporaryDirectory.appending(path: "stage-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: directory) }
            let stage = try await Stage(database, in: directory, keyMatches: keyMatches, configure)
            let outcome: Result<Void, any Error>
            do { outcome = .success(try await body(stage)) } catch { outcome = .failure(error) }
            await stage.apns.stop()
            await stage.connection.close()
            try outcome.get()
        }
    }

    private init(
        _ database: TemporaryDatabase, in directory: URL, keyMatches: Bool,
        _ configure: (inout FakeAPNSConfiguration) -> Void
    ) async throws {
        self.database = database
        self.directory = directory
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory.path)
        let keyFile = directory.appending(path: "key.p8").path
        try IdentityFiles.makeProviderKey(at: keyFile)
        let known = directory.appending(path: "known.p8").path
        try IdentityFiles.makeProviderKey(at: known)
        var configuration = FakeAPNSConfiguration(identity: identity)
        configuration.keys = [
            try IdentityFiles.providerKey(at: keyMatches ? keyFile : known, keyID: Self.keyID, teamID: Self.teamID)
        ]
        configuration.topics = [Self.topic]
        configure(&configuration)
        apns = try FakeAPNS(configuration, on: DatabaseServer.loop)
        let port = try await apns.start()
        connection = try await database.connect()
        let login = "e2e_\(getpid())"
        environment = [
            "DATABASE_URL": try "\(database.server.connectionString()) dbname=\(database.name) user=\(login)",
            "APNS_KEY_FILE": keyFile, "APNS_KEY_ID": Self.keyID, "APNS_TEAM_ID": Self.teamID,
            "APNS_TOPIC": Self.topic, "POSTBELL_APNS_ENDPOINT": "https://localhost:\(port)",
            "POSTBELL_CA_FILE": directory.appending(path: "ca.pem").path, "POSTBELL_LOG_LEVEL": "debug",
            "POSTBELL_APNS_5XX_DELAY": "1s", "POSTBELL_RETRY": "1s,1s,1s,1s",
        ]
        try await run(
            """
            DO $$ BEGIN
                CREATE ROLE \(login) LOGIN;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END $$;
            GRANT postbell_dispatcher TO \(login);
            SELECT postbell.define_kind('approval_requested', 'template',
                payload => '{"approval_id":"uuid!","tool_name":"slug?"}',
                content => '{"title":"Approval needed","body":"Allow {tool_name}?","container":"app"}');
            """)
    }

    /// The key that workers sign with.
    var keyFile: String { environment["APNS_KEY_FILE"] ?? "" }

    /// How the stage's workers reach the database.
    var databaseURL: String { environment["DATABASE_URL"] ?? "" }

    /// The database and the workers' login, for a connection string that names another way to the server.
    var databaseName: String { "dbname=\(database.name) user=e2e_\(getpid())" }

    /// Ends the sessions of all workers, as a server does that goes away.
    func endWorkersSessions() async throws {
        try await run(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND usename LIKE 'e2e%'
            """)
    }

    /// Starts a worker with the stage's environment, changed by `overrides`, and with further `arguments`.
    func startWorker(_ overrides: [String: String] = [:], arguments: [String] = []) throws -> WorkerProcess {
        let log = directory.appending(path: "worker-\(UUID().uuidString).log")
        return try WorkerProcess(
            ["postbell", "dispatch"] + arguments, environment: environment.merging(overrides) { _, new in new },
            log: log)
    }

    /// Runs a command of `postbell` with the stage's environment, changed by `overrides`, and waits for its end.
    func postbell(_ arguments: String..., overriding overrides: [String: String] = [:]) async throws -> CommandRun {
        try await CommandRun.of(
            "postbell", arguments, environment: environment.merging(overrides) { _, new in new }, in: directory)
    }

    /// Gives the workers the key that the fake knows, where they had another: in place of the old one at once.
    func useKnownKey() throws {
        let (file, known) = (directory.appending(path: "key.p8"), directory.appending(path: "known.p8"))
        guard rename(known.path, file.path) == 0 else { throw TestSetupError("the key cannot be replaced: \(errno)") }
    }

    /// Runs a script of psql's as a producer, whose session ends with the first error.
    func psql(_ script: String) async throws -> CommandRun {
        let file = directory.appending(path: "\(UUID()).sql")
        try script.write(to: file, atomically: true, encoding: .utf8)
        return try await CommandRun.of(
            "/usr/bin/psql",
            [
                "\(try database.server.connectionString()) dbname=\(database.name)", "-X", "-v", "ON_ERROR_STOP=1",
                "-f", file.path,
            ],
            environment: ["PATH": "/usr/bin:/bin"], in: directory)
    }

    /// Starts a worker that reaches the database through `proxy`.
    func startWorker(through proxy: Proxy, _ overrides: [String: String] = [:]) throws -> WorkerProcess {
        var overrides = overrides
        let login = "e2e_\(getpid())"
        overrides["DATABASE_URL"] = "host=127.0.0.1 port=\(proxy.port) dbname=\(database.name) user=\(login)"
        return try startWorker(overrides)
    }

    // MARK: SQL

    /// Runs statements as the superuser.
    func run(_ sql: String) async throws {
        try await connection.execute(sql, named: "stage")
    }

    /// The first column of a query, as text; null as an empty string.
    func texts(_ sql: String) async throws -> [String] {
        let name = "ask_\(UInt64(bitPattern: Int64(sql.hashValue)))"
        let statement = PostgresStatement(name, "SELECT (x.t)::text FROM (\(sql)) x(t)")
        let result = try await connection.query(statement, PostgresParameters())
        return try (0..<result.rowCount).map { row in
            result.isNull(row, 0) ? "" : try result.text(row, 0)
        }
    }

    /// Registers a device for this person; `token` is the beginning of its token, which the fake reads its mood from.
    func register(_ principal: String, token: String, device: String = "phone") async throws {
        let token = token + String(repeating: "0", count: 64 - token.count)
        try await run(
            """
            SELECT postbell.device_register('\(principal)', '\(device)', 'apns', '\(Self.topic)', '\(token)',
                environment => 'sandbox')
            """)
    }

    /// Enqueues a notification with plain SQL, as a producer does.
    func enqueue(_ principal: String, key: String, subject: String? = nil, tool: String = "mail.send") async throws {
        try await run(
            """
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
            VALUES ('\(principal)', 'approval_requested', '\(key)', \(subject.map { "'\($0)'" } ?? "NULL"),
                jsonb_build_object('approval_id', gen_random_uuid(), 'tool_name', '\(tool)')::text)
            """)
    }

    /// The status of a notification.
    func status(_ key: String) async throws -> String {
        try await texts("SELECT status FROM postbell.notifications WHERE dedupe_key = '\(key)'").first ?? "missing"
    }

    /// The outcomes on the ledger of a notification, oldest first.
    func outcomes(_ key: String) async throws -> [String] {
        try await texts(
            """
            SELECT l.outcome FROM postbell.ledger l JOIN postbell.outbox o ON o.id = l.notification_id
            WHERE o.dedupe_key = '\(key)' ORDER BY l.id
            """)
    }

    /// Waits until a notification has this status.
    func waitFor(_ key: String, _ status: String) async throws {
        try await eventually("\(key) is \(status)") { try await self.status(key) == status }
    }

    /// What the audit finds.
    func audit() async throws -> [String] {
        try await texts("SELECT fault || ' ' || coalesce(detail, '') FROM postbell.audit()")
    }
}
