import EventLoop
import Glibc
import OutboxPostgres
package import Postgres

/// A database of one test's own, dropped at its end.
package struct TemporaryDatabase: Sendable {
    /// Where it is.
    package let server: DatabaseServer
    /// Its name.
    package let name: String

    /// Runs `body` with a database that has the current schema. It is a copy of a template that is migrated once per
    /// process and server.
    package static func migrated<Value>(
        on server: DatabaseServer, _ body: (TemporaryDatabase) async throws -> Value
    ) async throws -> Value {
        let template = try await TemplateDatabases.shared.name(on: server)
        return try await make(on: server, "TEMPLATE \(template)", body)
    }

    /// Runs `body` with a database without a schema.
    package static func empty<Value>(
        on server: DatabaseServer, _ body: (TemporaryDatabase) async throws -> Value
    ) async throws -> Value {
        try await make(on: server, "", body)
    }

    /// Tests run all at once; a server takes 100 sessions, and a test may use half a dozen.
    private static let turnstile = Turnstile(12)

    private static func make<Value>(
        on server: DatabaseServer, _ template: String, _ body: (TemporaryDatabase) async throws -> Value
    ) async throws -> Value {
        await turnstile.enter()
        let database = TemporaryDatabase(
            server: server, name: "test_\(getpid())_\(UInt32.random(in: 0 ..< .max))")
        let outcome: Result<Value, any Error>
        do {
            try await administer(server, "CREATE DATABASE \(database.name) \(template)")
            outcome = .success(try await body(database))
        } catch {
            outcome = .failure(error)
        }
        try? await administer(server, "DROP DATABASE IF EXISTS \(database.name) WITH (FORCE)")
        await turnstile.leave()
        return try outcome.get()
    }

    /// Executes one statement in the server's maintenance database.
    static func administer(_ server: DatabaseServer, _ sql: String) async throws {
        let connection = try await PostgresConnection.connect(
            PostgresConfiguration(server.connectionString()), on: DatabaseServer.loop)
        let outcome: Result<Void, any Error>
        do {
            try await connection.execute(sql, named: "administer")
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await connection.close()
        try outcome.get()
    }

    /// How to reach it as the superuser, or in one of the schema's roles.
    package func configuration(role: String? = nil, worker: Bool = false) throws -> PostgresConfiguration {
        var configuration = try server.configuration(database: name)
        if worker { configuration.settings = PostgresOutboxStore.sessionSettings }
        if let role { configuration.settings.append(("role", role)) }
        return configuration
    }

    /// A session as the superuser, or in one of the schema's roles; `worker` gives it a worker's settings.
    package func connect(role: String? = nil, worker: Bool = false) async throws -> PostgresConnection {
        try await PostgresConnection.connect(
            configuration(role: role, worker: worker), on: DatabaseServer.loop)
    }

    /// A session of a login, which has no more rights than were granted to it: it cannot leave a role.
    package func connect(login: String) async throws -> PostgresConnection {
        try await PostgresConnection.connect(
            PostgresConfiguration("\(server.connectionString()) dbname=\(name) user=\(login)"), on: DatabaseServer.loop)
    }
}

/// The migrated databases that others are copied from, one per server; they stay until the server ends.
actor TemplateDatabases {
    static let shared = TemplateDatabases()
    private var names: [DatabaseServer: Task<String, any Error>] = [:]

    func name(on server: DatabaseServer) async throws -> String {
        if let making = names[server] { return try await making.value }
        let making = Task { try await Self.make(on: server) }
        names[server] = making
        return try await making.value
    }

    private static func make(on server: DatabaseServer) async throws -> String {
        let name = "template_\(getpid())"
        try await TemporaryDatabase.administer(server, "DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
        try await TemporaryDatabase.administer(server, "CREATE DATABASE \(name)")
        let connection = try await PostgresConnection.connect(
            server.configuration(database: name), on: DatabaseServer.loop)
        let outcome: Result<Void, any Error>
        do {
            // Roles belong to the whole server: a process that makes them at the same moment can make one fail.
            do { try await MigrationRunner(connection).apply() } catch {
                try await MigrationRunner(connection).apply()
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await connection.close()
        try outcome.get()
        return name
    }
}
