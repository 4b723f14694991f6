import EventLoop
import Foundation
import Postgres
import Testing

/// The two servers that `scripts/test` provides.
enum TestServer: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case postgres15 = "TEST_POSTGRES_15"
    case postgres18 = "TEST_POSTGRES_18"

    /// Carries all sessions of these tests.
    static let loop = EventLoop.startThread(name: "postgres-tests")

    struct Missing: Error, CustomStringConvertible {
        let description: String
    }

    var testDescription: String { rawValue }

    func connectionString() throws -> String {
        guard let text = ProcessInfo.processInfo.environment[rawValue] else {
            throw Missing(description: "\(rawValue) is not set: run scripts/test, which starts the servers")
        }
        return text
    }

    func configuration(adding more: String = "") throws -> PostgresConfiguration {
        try PostgresConfiguration("\(connectionString()) \(more)")
    }

    /// The server's Unix socket, for a proxy before it.
    func socketPath() throws -> String {
        let options = try connectionString().split(separator: " ").map { $0.split(separator: "=", maxSplits: 1) }
        let values = Dictionary(uniqueKeysWithValues: options.map { (String($0[0]), String($0[1])) })
        guard let folder = values["host"], folder.hasPrefix("/"), let port = values["port"] else {
            throw Missing(description: "\(rawValue) must name a folder as host, and a port")
        }
        return "\(folder)/.s.PGSQL.\(port)"
    }

    func connect() async throws -> PostgresConnection {
        try await PostgresConnection.connect(configuration(), on: Self.loop)
    }

    /// A session that is closed at the end of `body`.
    func withConnection(_ body: (PostgresConnection) async throws -> Void) async throws {
        let connection = try await connect()
        do { try await body(connection) } catch {
            await connection.close()
            throw error
        }
        await connection.close()
    }
}

extension PostgresConnection {
    /// The single value of a query that returns text.
    func value(_ sql: String) async throws -> String {
        let result = try await execute(sql)
        return try result.text(0, 0)
    }
}

/// The typed error of `body`; a failure of the test if it throws none.
func postgresError(_ body: () async throws -> Void) async throws -> PostgresError {
    do { try await body() } catch let error as PostgresError { return error }
    throw TestServer.Missing(description: "expected a PostgresError, nothing was thrown")
}
