/// What a command is and takes, for the parser and for `--help`.
struct CommandDescription: Sendable {
    let name: CommandName
    /// What it does, as it reads behind the name.
    let summary: String
    /// More on it, for its own help.
    let details: String
    /// What it is about, where the command line has to name it; nil for a command that takes options only.
    var operand: OperandDescription?
    let options: [OptionDescription]
    /// A command line that works, with what it does before it.
    let example: String
}

/// The one argument of a command that is not an option.
struct OperandDescription: Sendable {
    /// What the help calls it, in capitals.
    let name: String
    /// What it may be.
    let meaning: String
}

/// An option of a command.
struct OptionDescription: Sendable {
    /// With its two hyphens.
    let name: String
    /// What its value is called in the help; nil for an option without one.
    let value: String?
    let meaning: String

    static let help = OptionDescription(name: "--help", value: nil, meaning: "show this and end")
    static let json = OptionDescription(name: "--json", value: nil, meaning: "print JSON")
    static let environmentFile = OptionDescription(
        name: "--env-file", value: "FILE", meaning: "read settings from FILE too (format of systemd's EnvironmentFile=)"
    )
}
