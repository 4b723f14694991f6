import Postgres

extension CommandContext {
    /// Opens a session for a command, which waits for nothing: an unreachable server ends it.
    /// `readOnly` is for commands that only look: a standby may answer them too.
    func connect(
        _ database: Configuration.Database, as application: String, readOnly: Bool = false,
        settings: [(name: String, value: String)] = []
    ) async throws(CommandFailure) -> PostgresConnection {
        do throws(PostgresError) {
            var configuration = try PostgresConfiguration(database.connectionString)
            configuration.applicationName = application
            configuration.settings = [(name: "TimeZone", value: "UTC")] + settings
            configuration.acceptsReadOnly = readOnly
            return try await PostgresConnection.connect(configuration, on: loop)
        } catch {
            throw CommandFailure(error, place: place(of: database))
        }
    }

    /// Where the database is, as far as it is configured: no password.
    func place(of database: Configuration.Database) -> String {
        if !database.connectionString.isEmpty {
            let description = (try? PostgresConfiguration(database.connectionString))?.description ?? ""
            return description.isEmpty ? "DATABASE_URL" : "database \(description)"
        }
        let variables = environment.merging(database.variables) { first, _ in first }
        let named = ["PGSERVICE", "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER"].compactMap { name in
            variables[name].map { "\(name)=\($0)" }
        }
        return named.isEmpty ? "libpq's default database" : "database \(named.joined(separator: " "))"
    }
}
