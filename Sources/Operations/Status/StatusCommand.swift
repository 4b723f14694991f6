import EventLoop
import OutboxCore

/// `postbell status`: how much waits, who is at it, and what is wrong.
struct StatusCommand: Command {
    static let description = CommandDescription(
        name: .status,
        summary: "show queue, workers, lanes, and what is wrong",
        details: """
            Shows what waits and since when, what is in flight, which workers live and how their lanes are, and what \
            was attempted within the last minute. Ends with status 1 while an alarm stands: work that no live worker \
            serves, a lane that is paused or down, leases that nobody took over, rows that are long overdue or were \
            held by a worker that died. Needs a login that is granted postbell_reader.
            """,
        options: [tenant, watch, .json, .environmentFile],
        example: "postbell status --watch")

    private static let tenant = OptionDescription(
        name: "--tenant", value: "TENANT",
        meaning: "count only this tenant's rows; a login that is confined to tenants names one")
    private static let watch = OptionDescription(
        name: "--watch", value: nil, meaning: "show it again every two seconds, until Ctrl-C")

    private static let interval = Duration.seconds(2)

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        let isWatching = options.has(Self.watch)
        return try await ReadingSession.open(for: .status, options, context, tenant: options.value(Self.tenant)) {
            session throws(CommandFailure) in
            while true {
                let report = try await session.look { now throws(CommandFailure) in
                    try await StatusReport.read(session, now: now)
                }
                let text = options.has(.json) ? report.json.text + "\n" : report.text(for: context.output)
                context.output.write(isWatching && !options.has(.json) ? context.output.redrawing(text) : text)
                if !isWatching { return report.alarms.isEmpty ? .done : .bad }
                if context.output.isOver { return .done }
                // Ends early only when the loop does.
                try? await context.loop.sleep(for: Self.interval)
            }
        }
    }
}
