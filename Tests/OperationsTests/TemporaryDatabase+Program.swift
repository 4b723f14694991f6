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

extension TemporaryDatabase {
    /// Runs `body` with the name of a login that is what the documentation makes for a worker; it is dropped
    /// afterwards.
    func withWorkerLogin(_ body: (String) async throws -> Void) async throws {
        let login = "login_\(name)"
        try await execute("CREATE ROLE \(login) LOGIN IN ROLE postbell_dispatcher")
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await body(login)) } catch { outcome = .failure(error) }
        try await execute("DROP OWNED BY \(login); DROP ROLE \(login)")
        try outcome.get()
    }
}
