import OutboxPostgres
import Postgres

/// `postbell retain`: removes what was kept long enough, all of it, as workers do bit by bit.
struct RetainCommand: Command {
    static let description = CommandDescription(
        name: .retain,
        summary: "remove what was kept long enough",
        details: """
            Applies the policies of postbell.retention in small batches until nothing more is to be removed, and says \
            how much of each table it was; of the ledger, whole days. Nothing open is ever removed, and nothing at all \
            without a policy. Workers do the same by themselves. Needs a login that is granted postbell_operator.
            """,
        options: [.json, .environmentFile],
        example: "postbell retain --env-file /etc/postbell/operator.env")

    /// How many notifications one call looks at.
    private static let batch = 1000
    /// Longest time that one call may take.
    private static let limit = Duration.seconds(60)

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        let database = try context.configuration(for: .retain, options).database
        let connection = try await context.connect(database, as: "postbell retain")
        let place = context.place(of: database)
        let outcome: Result<[Removed], CommandFailure>
        do throws(CommandFailure) {
            try await Self.checkSchema(connection, place: place)
            outcome = .success(try await Self.removeAll(connection, place: place))
        } catch {
            outcome = .failure(error)
        }
        await connection.close()
        let removed = try outcome.get()
        context.output.write(options.has(.json) ? Self.json(removed) : Self.text(removed, for: context.output))
        return .done
    }

    /// What was removed of a table: rows, or days of the ledger.
    private struct Removed {
        let table: String
        var count: Int64
        var unit: String { table == "deliveries" ? "days" : "rows" }
    }

    private static func checkSchema(
        _ connection: PostgresConnection, place: String
    ) async throws(CommandFailure) {
        let revision: SchemaRevision
        do throws(MigrationError) {
            revision = try await SchemaRevision.read(from: connection)
        } catch {
            throw CommandFailure(reading: error, place: place)
        }
        if let failure = CommandFailure(revision, place: place) { throw failure }
    }

    private static func removeAll(
        _ connection: PostgresConnection, place: String
    ) async throws(CommandFailure) -> [Removed] {
        do throws(PostgresError) {
            var removed = try await policies(connection)
            var isBehind = true
            while isBehind {
                isBehind = false
                let batch = try await connection.execute(
                    "SELECT table_name, removed, is_behind FROM postbell.retain(\(batch))", named: "retain",
                    deadline: .now + limit)
                for row in 0..<batch.rowCount {
                    let table = try batch.text(row, 0)
                    let count = Int64(try batch.text(row, 1)) ?? 0
                    if let place = removed.firstIndex(where: { $0.table == table }) { removed[place].count += count }
                    if try batch.text(row, 2) == "t" { isBehind = true }
                }
            }
            if let ledger = removed.firstIndex(where: { $0.table == "deliveries" }) {
                while try await dropDay(connection) { removed[ledger].count += 1 }
            }
            return removed
        } catch {
            throw CommandFailure(error, place: place)
        }
    }

    /// The tables that have a policy, with nothing removed yet.
    private static func policies(_ connection: PostgresConnection) async throws(PostgresError) -> [Removed] {
        let rows = try await connection.execute(
            "SELECT table_name FROM postbell.retention WHERE keep IS NOT NULL ORDER BY 1", named: "policies",
            deadline: .now + limit)
        var tables: [Removed] = []
        for row in 0..<rows.rowCount { tables.append(Removed(table: try rows.text(row, 0), count: 0)) }
        return tables
    }

    private static func dropDay(_ connection: PostgresConnection) async throws(PostgresError) -> Bool {
        let day = try await connection.execute(
            "SELECT postbell.drop_ledger_day()", named: "drop a day", deadline: .now + limit)
        return !day.isNull(0, 0)
    }

    // MARK: Output

    private static func json(_ removed: [Removed]) -> String {
        let rows = removed.map { item in
            JSONText.object([
                ("table", .string(item.table)), ("removed", .int(Int(item.count))), ("unit", .string(item.unit)),
            ])
        }
        return JSONText.array(rows).text + "\n"
    }

    private static func text(_ removed: [Removed], for terminal: Terminal) -> String {
        guard !removed.isEmpty else {
            return "nothing is removed: no table has a policy (postbell.set_retention)\n"
        }
        var table = TableFormatter("TABLE", "REMOVED")
        for item in removed { table.append(item.table, "\(item.count) \(item.unit)") }
        return table.text(for: terminal)
    }
}
