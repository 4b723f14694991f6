/// `postbell config`: every setting with its effective value, where that comes from, and what else it could be.
struct ConfigCommand: Command {
    static let description = CommandDescription(
        name: .config,
        summary: "show the effective configuration and where each value is from",
        details: """
            Shows every setting, also those that nobody set, with its range. Secrets are shown as paths only. What is \
            wrong is said below the table, and the command then ends with status 3.
            """,
        options: [.json, .environmentFile],
        example: "postbell config --env-file /etc/postbell/apns.env")

    private static let hidden = "(set, not shown)"

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        let sources = try context.sources(options)
        let rows = Self.rows(sources)
        if options.has(.json) {
            context.output.write(JSONText.array(rows.map(\.json)).text + "\n")
        } else {
            var table = TableFormatter("NAME", "VALUE", "FROM", "RANGE")
            for row in rows { table.append(row.name, row.value ?? "-", row.origin, row.range ?? "") }
            context.output.write(table.text(for: context.output))
        }
        do throws(ConfigurationProblems) {
            _ = try Configuration(sources, for: .config)
        } catch {
            throw CommandFailure(error)
        }
        return .done
    }

    /// One setting or one of libpq's variables.
    private struct Row {
        let name: String
        let value: String?
        let origin: String
        var standard: String?
        var range: String?
        var meaning: String?

        var json: JSONText {
            .object([
                ("name", .string(name)), ("value", .string(value)), ("origin", .string(origin)),
                ("default", .string(standard)), ("range", .string(range)), ("meaning", .string(meaning)),
            ])
        }
    }

    private static func rows(_ sources: SettingSources) -> [Row] {
        let settings = SettingsTable.groups.flatMap { group in
            let variables = group.settings.map { SettingVariable($0.name) } + further(in: group, sources)
            return variables.map { row($0, sources) }
        }
        // libpq reads these itself, so only those that are set are of interest.
        let variables = DatabaseVariables.names.sorted().compactMap { name in
            sources.text(of: name).map { found in
                Row(
                    name: name, value: DatabaseVariables.secret.contains(name) ? hidden : found.text,
                    origin: found.origin.place, range: "as libpq reads it")
            }
        }
        return settings + variables
    }

    private static func row(_ variable: SettingVariable, _ sources: SettingSources) -> Row {
        let setting = SettingsTable.setting(variable.name)
        let found = sources.text(of: variable)
        return Row(
            name: found?.name ?? variable.text,
            value: found.map { shown($0.text, of: setting) } ?? setting.standard,
            origin: (found?.origin ?? .standard).place, standard: setting.standard, range: setting.type.range,
            meaning: setting.meaning)
    }

    /// The parts of the credentials that a group's list names, as far as it can be read.
    private static func further(in group: SettingGroup, _ sources: SettingSources) -> [SettingVariable] {
        CredentialSettings.all.filter { provider in group.settings.contains { $0.name == provider.list } }.flatMap {
            provider in
            let setting = SettingsTable.setting(provider.list)
            let text = sources.text(of: SettingVariable(provider.list))?.text
            guard let text, case .texts(let names)? = try? setting.type.parse(text) else { return [SettingVariable]() }
            return names.flatMap { name in provider.parts.map { SettingVariable($0, of: name) } }
        }
    }

    /// A value as it may be seen: what could hold a password, or a key in the place of its path, is not repeated.
    private static func shown(_ text: String, of setting: Setting) -> String {
        if case .connectionString = setting.type { return hidden }
        guard let value = try? setting.type.parse(text) else { return setting.type.isPrivate ? hidden : text.trimmed }
        if case .proxy(let proxy?) = value {
            return text.contains("@") ? "\(proxy) (its login is not shown)" : "\(proxy)"
        }
        return text.trimmed
    }
}
