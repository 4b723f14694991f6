/// Where a setting's value comes from.
package enum SettingOrigin: Sendable, Equatable {
    /// An option of the command line, by its name.
    case option(String)
    /// The process's environment.
    case environment
    /// An environment file.
    case file(path: String, line: Int)
    /// Nobody set it.
    case standard

    /// The place, as it reads in a line.
    package var place: String {
        switch self {
        case .option(let name): "option \(name)"
        case .environment: "environment"
        case .file(let path, let line): "\(QuotedText.line(path)) line \(line)"
        case .standard: "default"
        }
    }
}

/// The places that settings are read from.
package struct SettingSources: Sendable {
    /// The process's environment.
    package let environment: [String: String]
    /// The file of `--env-file`.
    package let file: EnvironmentFile?
    /// Options that set something, by name of the setting.
    package let options: [SettingName: (option: String, value: String)]

    /// Sources in this order of precedence: options, environment, file.
    package init(
        environment: [String: String], file: EnvironmentFile? = nil,
        options: [SettingName: (option: String, value: String)] = [:]
    ) {
        self.environment = environment
        self.file = file
        self.options = options
    }

    /// What a setting is set to, and where; of two spellings of its name the other counts where this one is not set.
    func text(of variable: SettingVariable) -> (name: String, text: String, origin: SettingOrigin)? {
        if let set = options[variable.name], variable.credential == nil {
            return (variable.text, set.value, .option(set.option))
        }
        let spellings = [variable.text] + (variable.name.otherSpelling.map { [$0] } ?? [])
        for spelling in spellings {
            if let found = text(of: spelling) { return (spelling, found.text, found.origin) }
        }
        return nil
    }

    /// What the environment, or else the file, has for `variable`. Empty counts as not set, as it does for libpq.
    func text(of variable: String) -> (text: String, origin: SettingOrigin)? {
        if let value = environment[variable], !value.trimmed.isEmpty { return (value, .environment) }
        if let file, let entry = file.entries[variable], !entry.value.trimmed.isEmpty {
            return (entry.value, .file(path: file.path, line: entry.line))
        }
        return nil
    }

    /// Where `variable` is set, empty or not.
    func origin(of variable: String) -> SettingOrigin {
        if environment[variable] != nil { return .environment }
        guard let file, let entry = file.entries[variable] else { return .standard }
        return .file(path: file.path, line: entry.line)
    }

    /// Every variable that is set anywhere, in alphabetical order.
    var variables: [String] {
        Set(environment.keys).union(file?.entries.keys.map { $0 } ?? []).sorted()
    }
}
