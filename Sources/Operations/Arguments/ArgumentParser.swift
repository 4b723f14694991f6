/// What a command line asks for.
enum Invocation: Equatable {
    /// Help for one command, or for all.
    case help(CommandName?)
    case version
    case run(CommandName, ParsedOptions)
}

/// The options of a command line that was understood.
struct ParsedOptions: Equatable {
    private(set) var values: [String: String] = [:]
    private(set) var flags: Set<String> = []
    /// What the command is about, where it takes an operand.
    fileprivate(set) var operand: String?

    /// Whether an option without a value was given.
    func has(_ option: OptionDescription) -> Bool { flags.contains(option.name) }

    /// The value of an option.
    func value(_ option: OptionDescription) -> String? { values[option.name] }

    fileprivate mutating func set(_ name: String, _ value: String?) -> Bool {
        guard values[name] == nil, !flags.contains(name) else { return false }
        if let value { values[name] = value } else { flags.insert(name) }
        return true
    }
}

/// Understands `postbell COMMAND [options]`.
struct ArgumentParser {
    private let commands: [CommandDescription]

    init(commands: [CommandDescription]) {
        self.commands = commands
    }

    /// Understands the arguments behind the program's name.
    func parse(_ arguments: [String]) throws(CommandFailure) -> Invocation {
        guard let first = arguments.first else {
            throw usage("no command was given", "command line", "see `postbell --help`")
        }
        switch first {
        case "--version": return .version
        case "--help", "-h": return .help(nil)
        case "help": return .help(arguments.count > 1 ? try command(arguments[1], position: 2).name : nil)
        default: break
        }
        let command = try self.command(first, position: 1)
        let rest = Array(arguments.dropFirst())
        if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
            return .help(command.name)
        }
        return .run(command.name, try options(rest, of: command))
    }

    private func command(_ name: String, position: Int) throws(CommandFailure) -> CommandDescription {
        if let command = commands.first(where: { $0.name.rawValue == name }) { return command }
        let nearest = NearestName.find(name, among: commands.map(\.name.rawValue))
        let isOption = name.hasPrefix("-")
        throw usage(
            isOption
                ? "\(QuotedText.quote(name)) stands where a command belongs"
                : "there is no command \(QuotedText.quote(name))",
            "argument \(position)",
            nearest.map { "did you mean \($0)?" } ?? "see `postbell --help`")
    }

    private func options(_ arguments: [String], of command: CommandDescription) throws(CommandFailure) -> ParsedOptions
    {
        var parsed = ParsedOptions()
        var index = 0
        var optionsEnded = false
        while index < arguments.count {
            let argument = arguments[index]
            // Counted from the command, which is argument 1.
            let place = "argument \(index + 2) of `postbell \(command.name.rawValue)`"
            index += 1
            if argument == "--", !optionsEnded, command.operand != nil {
                optionsEnded = true
                continue
            }
            guard argument.hasPrefix("-"), !optionsEnded else {
                guard command.operand != nil, parsed.operand == nil, !argument.isEmpty else {
                    throw usage(
                        "\(QuotedText.quote(argument)) is one argument too many", place, help(of: command))
                }
                parsed.operand = argument
                continue
            }
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let option = try option(parts[0], of: command, place)
            var value = parts.count == 2 ? parts[1] : nil
            if option.value != nil, value == nil, index < arguments.count, !arguments[index].hasPrefix("--") {
                value = arguments[index]
                index += 1
            }
            try check(option, value, place, command)
            guard parsed.set(option.name, value) else {
                throw usage("\(option.name) is given twice", place, "give it once")
            }
        }
        if let operand = command.operand, parsed.operand == nil {
            throw usage("\(operand.name) is missing", "`postbell \(command.name.rawValue)`", help(of: command))
        }
        return parsed
    }

    private func option(
        _ name: String, of command: CommandDescription, _ place: String
    ) throws(CommandFailure) -> OptionDescription {
        if let option = command.options.first(where: { $0.name == name }) { return option }
        let nearest = NearestName.find(name, among: command.options.map(\.name) + [OptionDescription.help.name])
        throw usage(
            "there is no option \(QuotedText.quote(name))", place,
            nearest.map { "did you mean \($0)?" } ?? help(of: command))
    }

    private func check(
        _ option: OptionDescription, _ value: String?, _ place: String, _ command: CommandDescription
    ) throws(CommandFailure) {
        if let name = option.value, value?.isEmpty ?? true {
            throw usage("\(option.name) lacks its value", place, "write \(option.name) \(name)")
        }
        if option.value == nil, value != nil {
            throw usage("\(option.name) takes no value", place, "write \(option.name) alone")
        }
    }

    private func help(of command: CommandDescription) -> String {
        "see `postbell \(command.name.rawValue) --help`"
    }

    private func usage(_ what: String, _ place: String, _ next: String) -> CommandFailure {
        CommandFailure(.usage, what: what, place: place, next: next)
    }
}
