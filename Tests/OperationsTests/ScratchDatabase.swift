import EventLoop
import Foundation
import Postgres
import Testing

/// An empty database of its own on one of the servers that `scripts/test` lends, for the time of `use`.
struct ScratchDatabase {
    /// Where it is, as the superuser reaches it.
    let connectionString: String
    private let session: PostgresConnection

    /// Makes a database on the server that the variable `server` names, lends it to `body`, and removes it.
    static func use(_ server: String, _ body: @Sendable (ScratchDatabase) async throws -> Void) async throws {
        let administrator = try #require(
            ProcessInfo.processInfo.environment[server], "\(server) is not set: run this by scripts/test")
        let name = "operations_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
        let loop = EventLoop.startThread(name: "scratch")
        defer { loop.stop() }
        let outer = try await PostgresConnection.connect(PostgresConfiguration(administrator), on: loop)
        try await outer.execute("CREATE DATABASE \(name)")
        let string = "\(administrator) dbname=\(name)"
        let result: Result<Void, any Error>
        do {
            let session = try await PostgresConnection.connect(PostgresConfiguration(string), on: loop)
            result = .success(try await body(ScratchDatabase(connectionString: string, session: session)))
            await session.close()
        } catch {
            result = .failure(error)
        }
        try await outer.execute("DROP DATABASE \(name) WITH (FORCE)")
        await outer.close()
        try result.get()
    }

    /// Executes SQL as the superuser.
    func execute(_ sql: String) async throws {
        try await session.execute(sql)
    }

    /// The program in this database.
    func run(_ arguments: String..., settings: String = "") throws -> Program.Result {
        try Program.run(arguments, environment: ["DATABASE_URL": "\(connectionString) \(settings)"])
    }
}
