/// `postbell migrate`: brings the schema up to date, or shows how it stands.
struct MigrateCommand: Command {
    static let description = CommandDescription(
        name: .migrate,
        summary: "bring the database schema up to date",
        details: """
            Applies the migrations that are missing, each in a transaction of its own. Needs a role that may create \
            the schema and its roles; workers may keep running unless a migration says otherwise.
            """,
        options: [status, dryRun, .json, .environmentFile],
        example: "DATABASE_URL=postgresql://admin@db.internal/app postbell migrate --dry-run")

    private static let status = OptionDescription(
        name: "--status", value: nil, meaning: "show which migrations are applied, and change nothing")
    private static let dryRun = OptionDescription(
        name: "--dry-run", value: nil, meaning: "show which migrations would be applied, and change nothing")

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        throw CommandFailure(
            .schema, what: "this build has no migrations", place: "program", next: "use psql with sql/migrations")
    }
}
