import OutboxCore

/// `postbell show`: the life of one notification, and what happens next.
struct ShowCommand: Command {
    static let description: CommandDescription = {
        var description = CommandDescription(
            name: .show,
            summary: "show the life of one notification, and what happens next",
            details: """
                Shows when it was enqueued, where it is now, each attempt per device, how it ended, and in plain words \
                what happens next and why. Ends with status 1 when there is no such notification. Needs a login that \
                is granted postbell_reader; never shows a token or a payload.
                """,
            options: [tenant, .json, .environmentFile],
            example: "postbell show approval:7f3c")
        description.operand = OperandDescription(
            name: "ID", meaning: "the notification's uuid, or its dedupe key")
        return description
    }()

    private static let tenant = OptionDescription(
        name: "--tenant", value: "TENANT",
        meaning: "whose notification: needed where several tenants have the same key, and by a login that is confined")

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        guard let name = options.operand else { preconditionFailure("the parser asks for ID") }
        let tenant = options.value(Self.tenant)
        let life = try await ReadingSession.open(for: .show, options, context, tenant: tenant) {
            session throws(CommandFailure) in
            try await session.look { now throws(CommandFailure) in
                let id = try await NotificationLife.find(name, tenant: tenant, session)
                return try await NotificationLife.read(id, session, now: now)
            }
        }
        context.output.write(options.has(.json) ? life.json.text + "\n" : life.text(for: context.output))
        return .done
    }
}
