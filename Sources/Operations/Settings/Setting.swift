/// One row of the table of settings: all that `--help`, `postbell config` and the reference page say about it.
package struct Setting: Sendable {
    /// The environment variable.
    package let name: SettingName
    /// What kind of value it takes, and within which range.
    package let type: SettingType
    /// The value that applies when it is not set, written as an operator would; nil when there is none.
    package let standard: String?
    /// What applies when it is not set and has no default, in a few words.
    package let absence: String
    /// What it does, in a few words.
    package let meaning: String
    /// Why this default and this range.
    package let reason: String
    /// The commands that read it; all others ignore it.
    package let commands: [CommandName]

    init(
        _ name: SettingName, _ type: SettingType, default standard: String? = nil, absence: String = "not set",
        _ meaning: String, reason: String, for commands: [CommandName] = [.dispatch]
    ) {
        self.name = name
        self.type = type
        self.standard = standard
        self.absence = absence
        self.meaning = meaning
        self.reason = reason
        self.commands = commands
    }
}

/// Settings that belong together, in the order of the reference page.
package struct SettingGroup: Sendable {
    /// Heading on the page.
    package let title: String
    /// What the group is about, in one or two sentences.
    package let introduction: String
    /// The settings.
    package let settings: [Setting]
}
