import FakeProviders
import Foundation
import OutboxCore
import Postgres
import Support
import Synchronization

/// A real worker with a database and a provider of its own, and who keeps it awake.
final class SleepLane: Sendable {
    private static let topic = "com.example.races"
    private static let keyID = "RACESKEY12"
    private static let teamID = "RACESTEAM1"
    private static let patience = Duration.seconds(30)

    /// The session of the producer whose push is waited for.
    let producer: PostgresConnection
    private let feeder, watcher: PostgresConnection
    private let apns: FakeAPNS
    private let committed = Mutex(0)
    private let rows = Mutex(0)

    /// Runs `body` beside a worker that is at work, and ends both.
    static func on<Value>(_ server: DatabaseServer, _ body: (SleepLane) async throws -> Value) async throws -> Value {
        try await TemporaryDatabase.migrated(on: server) { database in
            let directory = FileManager.default.temporaryDirectory.appending(path: "races-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: directory) }
            let apns = try provider(in: directory)
            let port = try await apns.start()
            let lane = SleepLane(
                producer: try await database.connect(), feeder: try await database.connect(),
                watcher: try await database.connect(), apns: apns)
            let login = try await lane.prepare()
            let worker = try start(
                directory, port: port, url: "\(server.connectionString()) dbname=\(database.name) user=\(login)")
            defer { kill(worker.processIdentifier, SIGKILL) }
            let outcome: Result<Value, any Error>
            do {
                // The first push says that the worker has started.
                try await lane.insert(0)
                _ = try await lane.awaitArrival()
                outcome = .success(try await body(lane))
            } catch {
                let end = worker.isRunning ? "the worker runs" : "the worker ended with \(worker.terminationStatus)"
                outcome = .failure(TestSetupError("\(error); \(end)"))
            }
            kill(worker.processIdentifier, SIGTERM)
            for connection in [lane.producer, lane.feeder, lane.watcher] { await connection.close() }
            await apns.stop()
            return try outcome.get()
        }
    }

    private init(
        producer: PostgresConnection, feeder: PostgresConnection, watcher: PostgresConnection, apns: FakeAPNS
    ) {
        (self.producer, self.feeder, self.watcher, self.apns) = (producer, feeder, watcher, apns)
    }

    private static func provider(in directory: URL) throws -> FakeAPNS {
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory.path)
        let key = directory.appending(path: "key.p8").path
        try IdentityFiles.makeProviderKey(at: key)
        var configuration = FakeAPNSConfiguration(identity: identity)
        configuration.keys = [try IdentityFiles.providerKey(at: key, keyID: keyID, teamID: teamID)]
        configuration.topics = [topic]
        configuration.keptRequests = 0
        configuration.countsAccepts = true
        return try FakeAPNS(configuration, on: DatabaseServer.loop)
    }

    private func prepare() async throws -> String {
        let login = "races_\(getpid())"
        try await watcher.execute(
            """
            DO $$ BEGIN
                CREATE ROLE \(login) LOGIN;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END $$;
            GRANT postbell_dispatcher TO \(login);
            CREATE FUNCTION public.is_awake() RETURNS boolean LANGUAGE sql AS $$
                SELECT EXISTS (
                    SELECT 1 FROM pg_locks
                    WHERE locktype = 'advisory'
                        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                        AND classid = postbell.awake_class()::oid
                        AND mode = 'ExclusiveLock'
                        AND granted)
            $$;
            SELECT postbell.define_kind('note', 'template', '{}', '{"title": "Note"}');
            SELECT postbell.device_register('anna', 'phone', 'apns', '\(Self.topic)', repeat('0a', 32),
                environment => 'sandbox')
            """)
        return login
    }

    /// The worker's program lies beside this one. It ends with the thread that starts it.
    private static func start(_ directory: URL, port: UInt16, url: String) throws -> Process {
        let own = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/setpriv")
        process.arguments = [
            "--pdeathsig", "KILL", "--", own.deletingLastPathComponent().appending(path: "postbell").path, "dispatch",
        ]
        process.environment = [
            "DATABASE_URL": url, "APNS_KEY_FILE": directory.appending(path: "key.p8").path, "APNS_KEY_ID": keyID,
            "APNS_TEAM_ID": teamID, "APNS_TOPIC": topic, "POSTBELL_APNS_ENDPOINT": "https://localhost:\(port)",
            "POSTBELL_CA_FILE": directory.appending(path: "ca.pem").path, "POSTBELL_LOG_LEVEL": "warning",
            "POSTBELL_POLL": "\(SleepRace.poll.components.seconds)s", "SWIFT_BACKTRACE": "enable=no",
        ]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }

    // MARK: Awake and asleep

    /// Whether the worker holds the awake key of its route.
    func isAwake() async throws -> Bool {
        try await watcher.query(Self.held).bool(0, 0)
    }

    /// Waits, looking again and again, until the worker has let go of the key.
    func awaitSleep() async throws {
        let end = ContinuousClock.now + Self.patience
        while try await isAwake() {
            if ContinuousClock.now > end { throw TestSetupError("the worker does not go to sleep") }
        }
    }

    /// Commits rows faster than they are looked for, for as long as `body` runs.
    func keepAwake(_ body: () async throws -> Void) async throws {
        let done = Flag()
        async let fed: Void = feed(until: done)
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        done.raise()
        try await fed
        try outcome.get()
    }

    private func feed(until done: Flag) async throws {
        while !done.isRaised {
            let batch = (0..<8).map { _ in
                var parameters = PostgresParameters()
                parameters.append("feed-\(next())")
                return PostgresCommand(Self.fed, parameters)
            }
            for result in try await feeder.pipeline(batch) { _ = try result.get() }
            committed.withLock { $0 += batch.count }
        }
    }

    private func next() -> Int {
        rows.withLock {
            $0 += 1
            return $0
        }
    }

    /// The producer's push, committed at once.
    func insert(_ number: Int) async throws {
        _ = try await producer.enqueue(to: "anna", key: "try-\(number)-\(next())")
    }

    /// The producer's push, in a transaction that stays open, if the key was held before and after the insert, and so
    /// at it. Answers whether it was; if not, nothing is left.
    func insertUnnotified(_ number: Int) async throws -> Bool {
        let result = try await producer.execute(
            """
            BEGIN;
            SELECT set_config('races.held', public.is_awake()::text, true);
            SELECT postbell.enqueue('note', 'anna', 'try-\(number)-\(next())');
            SELECT (current_setting('races.held')::boolean AND public.is_awake())::text
            """)
        if try result.text(0, 0) == "true" { return true }
        try await producer.execute("ROLLBACK")
        return false
    }

    /// From now, where a commit has just been answered, until the provider has all that was committed; the last of it
    /// is the producer's.
    func awaitArrival() async throws -> Duration {
        let began = ContinuousClock.now
        let total = committed.withLock {
            $0 += 1
            return $0
        }
        _ = await apns.requests(reaching: total, within: Self.patience)
        let arrived = await apns.statistics.requests
        guard arrived == total else { throw TestSetupError("\(total) were committed, \(arrived) have arrived") }
        return began.duration(to: .now)
    }

    /// Whether all was accepted once.
    func finish() async throws {
        let accepts = await apns.accepts
        guard accepts.count == committed.withLock({ $0 }), accepts.values.allSatisfy({ $0 == 1 }) else {
            throw TestSetupError("not everything was accepted exactly once")
        }
    }

    private static let fed = PostgresStatement(
        "feed", "SELECT postbell.enqueue('note', 'anna', $1)", parameterTypes: [.text])

    private static let held = PostgresStatement("awake", "SELECT public.is_awake()")
}
