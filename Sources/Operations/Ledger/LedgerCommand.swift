import OutboxCore
import Postgres

/// `postbell ledger`: what was attempted, for whom, and what came of it.
struct LedgerCommand: Command {
    static let description = CommandDescription(
        name: .ledger,
        summary: "show attempts: what was sent to whom, and what came of it",
        details: """
            Shows the newest attempts that fit all filters, oldest first, and says when there are more. Without \
            --principal, --device or --notification it looks at the last 24 hours unless --since says otherwise. Needs \
            a login that is granted postbell_reader; never shows a token or a payload.
            """,
        options: LedgerFilter.options + [.json, .environmentFile],
        example: "postbell ledger --principal user-42 --since 7d")

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        let filter = try LedgerFilter(options)
        let page = try await ReadingSession.open(for: .ledger, options, context, tenant: filter.tenant) {
            session throws(CommandFailure) in
            try await session.look { now throws(CommandFailure) in
                try await LedgerPage.read(filter, session, now: now)
            }
        }
        if options.has(.json) {
            context.output.write(page.json.text + "\n")
        } else {
            context.output.write(page.text(for: context.output))
        }
        return .done
    }
}

/// What a search of the ledger found.
struct LedgerPage: Equatable, Sendable {
    let filter: LedgerFilter
    /// Oldest first.
    let entries: [LedgerEntry]
    /// Whether older ones were left out.
    let hasMore: Bool
    /// The database's time of the snapshot.
    let now: Timestamp

    static func read(
        _ filter: LedgerFilter, _ session: ReadingSession, now: Timestamp
    ) async throws(CommandFailure) -> LedgerPage {
        var device: LedgerStatement.DeviceKey?
        if let id = filter.device {
            device = try await Self.device(id, session)
        }
        let command = LedgerStatement.command(filter, device: device, now: now)
        let found = try await session.rows(command.statement, command.parameters) { row throws(PostgresError) in
            try LedgerEntry(&row)
        }
        return LedgerPage(
            filter: filter, entries: found.prefix(filter.limit).reversed(), hasMore: found.count > filter.limit,
            now: now
        )
    }

    private static func device(
        _ id: Identifier, _ session: ReadingSession
    ) async throws(CommandFailure) -> LedgerStatement.DeviceKey {
        var parameters = PostgresParameters()
        parameters.append(uuid: (id.high, id.low))
        let found = try await session.rows(LedgerStatement.device, parameters) { row throws(PostgresError) in
            LedgerStatement.DeviceKey(number: Int64(try row.int8()), tenant: try row.text(), principal: try row.text())
        }
        guard let device = found.first else {
            throw session.bad("there is no device \(id)", next: "look at the ids that `postbell ledger --json` prints")
        }
        return device
    }

    var json: JSONText {
        .object([
            ("now", .instant(now)), ("limit", .int(filter.limit)), ("more", .bool(hasMore)),
            ("since", .instant(filter.effectiveSince?.instant(from: now))),
            ("until", .instant(filter.until?.instant(from: now))), ("attempts", .array(entries.map(\.json))),
        ])
    }

    func text(for terminal: Terminal) -> String {
        var text = ""
        if entries.isEmpty {
            text += "no attempt fits\n"
        } else {
            var table = TableFormatter(
                "WHEN (UTC)", "AGE", "PERSON", "KIND", "DEVICE", "OUTCOME", "ANSWER", "TOOK", "THEN")
            for entry in entries {
                table.append(
                    String(TimeText.absolute(entry.instant).dropLast(3)),
                    TimeText.distance(from: entry.instant, to: now),
                    entry.principal ?? "-", entry.kind ?? "-", entry.deviceTitle, entry.outcome, entry.answer,
                    entry.duration.map(TimeText.length) ?? "-", entry.consequence)
            }
            text += table.text(for: terminal)
        }
        for note in notes { text += terminal.paint(note, .dim) + "\n" }
        return text
    }

    /// What the table cannot say about itself.
    private var notes: [String] {
        var notes: [String] = []
        if hasMore {
            notes.append("there are older ones: these are the newest \(filter.limit); --limit shows more")
        }
        if filter.since == nil, !filter.isAnchored {
            notes.append("of the last 24 hours; --since looks further back")
        }
        if entries.contains(where: { $0.outcome == OutcomeKind.unknown.name }) {
            notes.append("unknown: \(OutcomeWords.unknown)")
        }
        return notes
    }
}
