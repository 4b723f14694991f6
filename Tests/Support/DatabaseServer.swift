package import EventLoop
import Glibc
package import Postgres

/// The private servers that `scripts/test` starts, one per supported end of PostgreSQL's versions.
package enum DatabaseServer: String, CaseIterable, Sendable, CustomStringConvertible {
    case postgres15 = "TEST_POSTGRES_15"
    case postgres18 = "TEST_POSTGRES_18"

    /// Carries the sessions of the tests of one process.
    package static let loop = EventLoop.startThread(name: "database-tests")

    package var description: String { self == .postgres15 ? "PostgreSQL 15" : "PostgreSQL 18" }

    /// libpq connection string of a superuser. Throws, saying what to do, where the variable is missing.
    package func connectionString() throws -> String {
        guard let value = getenv(rawValue) else {
            throw TestSetupError("\(rawValue) is not set: run scripts/test, which starts the servers")
        }
        return String(cString: value)
    }

    /// Its Unix socket, for a proxy before it.
    package func socketPath() throws -> String {
        let options = try connectionString().split(separator: " ").map { $0.split(separator: "=", maxSplits: 1) }
        let values = Dictionary(uniqueKeysWithValues: options.map { (String($0[0]), String($0[1])) })
        guard let folder = values["host"], folder.hasPrefix("/"), let port = values["port"] else {
            throw TestSetupError("\(rawValue) must name a folder as host, and a port")
        }
        return "\(folder)/.s.PGSQL.\(port)"
    }

    /// How to reach one of its databases as the superuser.
    package func configuration(database: String) throws -> PostgresConfiguration {
        try PostgresConfiguration("\(connectionString()) dbname=\(database)")
    }
}

/// The surroundings of a test are not as they must be.
package struct TestSetupError: Error, CustomStringConvertible {
    package let description: String

    /// An error that says what is missing and what to do.
    package init(_ description: String) {
        self.description = description
    }
}
