import EventLoop
import OutboxCore
import OutboxPostgres
import Postgres

/// A session of a command that only looks: the statements of one look see one snapshot, and none can change anything.
struct ReadingSession: Sendable {
    private let connection: PostgresConnection
    private let place: String
    /// For how long a row may be due before it counts as stuck.
    let stuckAfter: Duration

    /// What looking may take of a server that has other work: long enough for a count of a queue of millions.
    private static let statementLimit = Duration.seconds(60)

    /// Opens a session for `command`, sees that the schema is the one this program knows, and runs `body`. `tenant`
    /// narrows what row security shows, and is the one that a confined login has to name.
    static func open<Value: Sendable>(
        for command: CommandName, _ options: ParsedOptions, _ context: CommandContext, tenant: String? = nil,
        _ body: (ReadingSession) async throws(CommandFailure) -> Value
    ) async throws(CommandFailure) -> Value {
        let configuration = try context.configuration(for: command, options)
        let database = configuration.database
        let connection = try await context.connect(
            database, as: "postbell \(command.rawValue)", readOnly: true,
            settings: tenant.map { [(name: "postbell.tenant_id", value: $0)] } ?? [])
        let session = ReadingSession(
            connection: connection, place: context.place(of: database), stuckAfter: configuration.dispatch.stuckAfter)
        let outcome: Result<Value, CommandFailure>
        do throws(CommandFailure) {
            try await session.checkSchema()
            // Row security shows nothing to a confined login that names no tenant of its own: as if there were nothing.
            try await session.execute("SELECT postbell.operator_tenant()")
            outcome = .success(try await body(session))
        } catch {
            outcome = .failure(error)
        }
        await connection.close()
        return try outcome.get()
    }

    /// Runs `body` in one snapshot, given the database's time at it.
    func look<Value: Sendable>(
        _ body: (Timestamp) async throws(CommandFailure) -> Value
    ) async throws(CommandFailure) -> Value {
        try await execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        let times = try await rows(Self.clock) { row throws(PostgresError) in try row.instant() }
        let value = try await body(times.first ?? Timestamp(microseconds: 0))
        try await execute("COMMIT")
        return value
    }

    /// The rows of a statement, each read by `read`.
    func rows<Row: Sendable>(
        _ statement: PostgresStatement, _ parameters: PostgresParameters = PostgresParameters(),
        _ read: (inout RowReader) throws(PostgresError) -> Row
    ) async throws(CommandFailure) -> [Row] {
        do throws(PostgresError) {
            let result = try await connection.query(
                statement, parameters, deadline: .now + Self.statementLimit)
            var rows: [Row] = []
            rows.reserveCapacity(result.rowCount)
            for index in 0..<result.rowCount {
                var reader = RowReader(result, row: index)
                rows.append(try read(&reader))
            }
            return rows
        } catch {
            throw CommandFailure(reading: error, place: place)
        }
    }

    private static let clock = PostgresStatement("now", "SELECT pg_catalog.now()")

    /// A failure of what was asked for: status 1.
    func bad(_ what: String, next: String) -> CommandFailure {
        CommandFailure(.bad, what: what, place: place, next: next)
    }

    private func checkSchema() async throws(CommandFailure) {
        let revision: SchemaRevision
        do throws(MigrationError) {
            revision = try await SchemaRevision.read(from: connection)
        } catch {
            throw CommandFailure(reading: error, place: place)
        }
        if let failure = CommandFailure(revision, place: place) { throw failure }
    }

    private func execute(_ sql: String) async throws(CommandFailure) {
        do throws(PostgresError) {
            try await connection.execute(sql, named: "snapshot")
        } catch {
            throw CommandFailure(reading: error, place: place)
        }
    }
}
