import OutboxPostgres
import Postgres

/// `postbell migrate`: brings the schema up to date, or shows how it stands.
struct MigrateCommand: Command {
    static let description = CommandDescription(
        name: .migrate,
        summary: "bring the database schema up to date",
        details: """
            Applies the migrations that are missing, each in a transaction of its own; one that fails leaves no trace. \
            Needs a role with CREATE on the database, and CREATEROLE the first time. With --status it ends with status \
            1 while migrations are missing, and with 5 when the database has others than this program.
            """,
        options: [status, dryRun, .json, .environmentFile],
        example: "DATABASE_URL=postgresql://admin@db.internal/app postbell migrate --dry-run")

    private static let status = OptionDescription(
        name: "--status", value: nil, meaning: "show how each migration stands, and change nothing")
    private static let dryRun = OptionDescription(
        name: "--dry-run", value: nil, meaning: "show which migrations would be applied, and change nothing")

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        if options.has(Self.status), options.has(Self.dryRun) {
            throw CommandFailure(
                .usage, what: "--status and --dry-run exclude each other", place: "command line",
                next: "give one of them")
        }
        let database = try context.configuration(for: .migrate, options).database
        let connection = try await context.connect(database, as: "postbell migrate")
        let runner = MigrationRunner(connection)
        let outcome: Result<ExitCode, CommandFailure>
        do throws(MigrationError) {
            let output = MigrationOutput(terminal: context.output, isJSON: options.has(.json))
            if options.has(Self.status) {
                outcome = try await .success(show(runner, output))
            } else if options.has(Self.dryRun) {
                output.wouldApply(try await runner.pending())
                outcome = .success(.done)
            } else {
                output.finished(try await runner.apply { output.applied($0) })
                outcome = .success(.done)
            }
        } catch {
            outcome = .failure(CommandFailure(error, place: context.place(of: database)))
        }
        await connection.close()
        return try outcome.get()
    }

    /// Shows how all migrations stand, and throws when others are applied than this program has.
    private func show(_ runner: MigrationRunner, _ output: MigrationOutput) async throws(MigrationError) -> ExitCode {
        let statuses = try await runner.status()
        output.show(statuses)
        switch SchemaRevision.judge(statuses) {
        case .current: return .done
        case .tooOld: return .bad
        case .tooNew(let version): throw .tooNew(version: version)
        case .changed(let version):
            throw .changed(version: version, name: statuses.first { $0.version == version }?.name ?? "")
        }
    }
}

/// What the command prints, for people or as JSON.
private struct MigrationOutput: Sendable {
    let terminal: Terminal
    let isJSON: Bool

    func show(_ statuses: [MigrationStatus]) {
        if isJSON {
            let rows = statuses.map { status in
                let (state, instant) = Self.words(status.state)
                return JSONText.object([
                    ("version", .int(status.version)), ("name", .string(status.name)), ("state", .string(state)),
                    ("applied_at", .string(instant)),
                ])
            }
            return terminal.write(JSONText.array(rows).text + "\n")
        }
        var table = TableFormatter("VERSION", "NAME", "STATE", "APPLIED AT")
        for status in statuses {
            let (state, instant) = Self.words(status.state)
            table.append(String(status.version), status.name, state, instant.map { TimeText.withDistance($0) } ?? "-")
        }
        terminal.write(table.text(for: terminal))
    }

    func wouldApply(_ migrations: [Migration]) {
        if isJSON { return write("pending", migrations) }
        for migration in migrations { terminal.write("would apply \(Self.title(migration))\n") }
        if migrations.isEmpty { sayNothingToDo() }
    }

    func applied(_ migration: Migration) {
        if !isJSON { terminal.write("applied \(Self.title(migration))\n") }
    }

    func finished(_ migrations: [Migration]) {
        if isJSON { return write("applied", migrations) }
        if migrations.isEmpty { sayNothingToDo() }
    }

    private func write(_ key: String, _ migrations: [Migration]) {
        let list = migrations.map { migration in
            JSONText.object([("version", .int(migration.version)), ("name", .string(migration.name))])
        }
        terminal.write(JSONText.object([("revision", .int(SchemaRevision.expected)), (key, .array(list))]).text + "\n")
    }

    private func sayNothingToDo() {
        terminal.write("nothing to do: the schema is at revision \(SchemaRevision.expected)\n")
    }

    private static func title(_ migration: Migration) -> String {
        "migration \(migration.version) (\(migration.name))"
    }

    private static func words(_ state: MigrationStatus.State) -> (state: String, instant: String?) {
        switch state {
        case .pending: ("pending", nil)
        case .applied(let instant): ("applied", instant)
        case .changed(let instant): ("changed", instant)
        case .unknown(let instant): ("unknown", instant)
        }
    }
}
