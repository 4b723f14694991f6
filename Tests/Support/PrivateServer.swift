import EventLoop
import OutboxPostgres
package import Postgres

/// A server of one test's own, for what no test may do to one that others use: to stop it, to let it crash, to change
/// its settings.
///
/// A server under test makes it with its own programs and its own account. It ends by itself after two minutes, should
/// the test not come to stop it.
package struct PrivateServer: Sendable {
    /// How a server is stopped.
    package enum Stop: Sendable {
        /// In order: sessions are ended, and all is written down.
        case fast
        /// As a crash: what is in memory is lost, and the next start recovers from the write-ahead log.
        case immediate
    }

    private let maker: PostgresConnection
    private let programs: String
    private let folder: String

    /// Runs `body` with a new server that has the schema, and takes it away afterwards.
    package static func migrated(
        beside server: DatabaseServer, _ body: (PrivateServer) async throws -> Void
    ) async throws {
        let maker = try await PostgresConnection.connect(
            server.configuration(database: "postgres"), on: DatabaseServer.loop)
        let programs = try await maker.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").text(0, 0)
        let folder = "/tmp/postbell-private-\(UInt32.random(in: 0 ..< .max))"
        let made = PrivateServer(maker: maker, programs: programs, folder: folder)
        let outcome: Result<Void, any Error>
        do {
            try await made.make()
            try await made.start()
            let connection = try await made.connect()
            _ = try await MigrationRunner(connection).apply()
            await connection.close()
            outcome = .success(try await body(made))
        } catch {
            outcome = .failure(error)
        }
        try? await made.stop(.immediate)
        try? await made.shell("rm -rf \(folder)")
        await maker.close()
        try outcome.get()
    }

    private func make() async throws {
        try await shell(
            """
            mkdir -m 755 \(folder) && unset LC_ALL LANG; \
            \(programs)/initdb -D \(folder)/data -U postgres -A trust -E UTF8 --locale=C --no-sync \
            >\(folder)/initdb.log 2>&1
            """)
    }

    /// Starts it, and returns when it takes connections.
    package func start() async throws {
        // It survives a crash of its processes without waiting for the disk, which a power cut alone would need.
        try await shell(
            """
            (timeout 120 \(programs)/postgres -D \(folder)/data -k \(folder) -p 5432 -c listen_addresses= \
            -c fsync=off -c shared_buffers=16MB >>\(folder)/log 2>&1 </dev/null &); \
            for i in $(seq 300); do \(programs)/pg_isready -q -h \(folder) && exit 0; sleep 0.1; done; exit 1
            """)
    }

    /// Stops it, and returns when it has ended.
    package func stop(_ how: Stop) async throws {
        try await shell("\(programs)/pg_ctl stop -D \(folder)/data -m \(how) -s -w")
    }

    /// A session of the superuser, or in one of the schema's roles.
    package func connect(role: String? = nil) async throws -> PostgresConnection {
        var configuration = try PostgresConfiguration("host=\(folder) port=5432 user=postgres dbname=postgres")
        if let role { configuration.settings.append(("role", role)) }
        return try await PostgresConnection.connect(configuration, on: DatabaseServer.loop)
    }

    private func shell(_ script: String) async throws {
        try await maker.execute(
            "COPY (SELECT 1) TO PROGRAM $sh$\(script)$sh$", named: "shell", deadline: .now + .seconds(60))
    }
}
