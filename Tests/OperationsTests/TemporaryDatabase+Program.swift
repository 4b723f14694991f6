import Postgres
import Support

extension TemporaryDatabase {
    /// Where it is, as the superuser reaches it.
    var connectionString: String {
        get throws { "\(try server.connectionString()) dbname=\(name)" }
    }

    /// Executes SQL as the superuser.
    func execute(_ sql: String) async throws {
        let connection = try await connect()
        do { try await connection.execute(sql) } catch {
            await connection.close()
            throw error
        }
        await connection.close()
    }

    /// Runs the program in this database, with more or other keywords of the connection string.
    func run(_ arguments: String..., settings: String = "") throws -> Program.Result {
        try Program.run(arguments, environment: ["DATABASE_URL": "\(connectionString) \(settings)"])
    }
}
