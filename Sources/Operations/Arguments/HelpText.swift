/// What `--help` prints.
enum HelpText {
    private static let width = 80

    /// The overview of all commands.
    static func overview(_ commands: [CommandDescription]) -> String {
        let list = commands.map { ($0.name.rawValue, $0.summary) }
        let options = [("--help", "show this; behind a command, its own help"), ("--version", "show the version")]
        return """
            Postbell delivers push notifications from PostgreSQL.

            Usage: postbell COMMAND [options]

            Commands:
            \(columns(list))

            Options:
            \(columns(options))

            Example:
              DATABASE_URL=postgresql://admin@db.internal/app postbell migrate --status

            Exit status:
            \(columns(ExitCode.allCases.map { (String($0.rawValue), $0.meaning) }))

            """
    }

    /// The help of one command.
    static func command(_ command: CommandDescription) -> String {
        let options = (command.options + [.help]).map { option in
            (option.name + (option.value.map { " " + $0 } ?? ""), option.meaning)
        }
        let settings = SettingsTable.groups.flatMap(\.settings).filter { $0.commands.contains(command.name) }.map {
            setting in
            (
                setting.name.rawValue,
                "\(setting.meaning) (\(setting.type.range); default: \(setting.standard ?? setting.absence))"
            )
        }
        let list = settings.isEmpty ? "" : "\nSettings, from the environment:\n\(columns(settings))\n"
        let operand = command.operand.map { "\nArgument:\n\(columns([($0.name, $0.meaning)]))\n" } ?? ""
        return """
            postbell \(command.name.rawValue): \(command.summary)

            \(wrapped(command.details, indent: 0))

            Usage: postbell \(command.name.rawValue)\(command.operand.map { " " + $0.name } ?? "") [options]
            \(operand)
            Options:
            \(columns(options))

            Example:
              \(command.example)
            \(list)
            """
    }

    /// Names, and beside them their meaning, wrapped within its column.
    private static func columns(_ rows: [(name: String, meaning: String)]) -> String {
        let column = min(28, rows.map(\.name.count).max() ?? 0) + 4
        return rows.map { name, meaning in
            let text = wrapped(meaning, indent: column)
            let gap =
                name.count + 4 > column
                ? "\n" + String(repeating: " ", count: column)
                : String(repeating: " ", count: column - 2 - name.count)
            return "  \(name)\(gap)\(text)"
        }.joined(separator: "\n")
    }

    private static func wrapped(_ text: String, indent: Int) -> String {
        var lines = [""]
        for word in text.split(separator: " ") {
            let line = lines[lines.count - 1]
            if !line.isEmpty, indent + line.count + 1 + word.count > width {
                lines.append(String(word))
            } else {
                lines[lines.count - 1] = line.isEmpty ? String(word) : "\(line) \(word)"
            }
        }
        return lines.joined(separator: "\n" + String(repeating: " ", count: indent))
    }
}
