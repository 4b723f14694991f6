import HTTP2

/// All settings as a command sees them: understood, with their origin. What cannot be understood is a problem.
struct ResolvedSettings {
    /// What a setting is, and why.
    struct Resolved {
        let value: SettingValue?
        /// As it was written; the default's own text when nobody set it.
        let text: String?
        let origin: SettingOrigin
    }

    private(set) var problems: [ConfigurationProblem] = []
    private var resolved: [SettingVariable: Resolved] = [:]
    /// Settings whose text was not understood, for whichever credential.
    private(set) var refused: Set<SettingName> = []
    private let command: CommandName

    /// Resolves what `command` reads; everything else is as if not set. `config` and `check` read all.
    init(_ sources: SettingSources, for command: CommandName) {
        self.command = command
        for name in SettingName.allCases { resolve(SettingVariable(name), sources) }
        for settings in CredentialSettings.all where reads(settings.list) {
            for credential in texts(settings.list) ?? [] {
                for part in settings.parts { resolve(SettingVariable(part, of: credential), sources) }
            }
        }
        refuseUnknownNames(sources)
    }

    /// The names of all credentials of a provider that somebody has set, the standard one first.
    func credentials(_ settings: CredentialSettings) -> [String] {
        let hasStandard = settings.parts.contains { isSet($0) }
        return (hasStandard ? [CredentialName.standard] : []) + (texts(settings.list) ?? [])
    }

    /// Whether the command that these settings are for reads `name`.
    func reads(_ name: SettingName) -> Bool {
        command.readsAll || SettingsTable.setting(name).commands.contains(command)
    }

    /// The value and origin of `name`.
    func entry(_ name: SettingName, of credential: String? = nil) -> Resolved {
        resolved[SettingVariable(name, of: credential)] ?? Resolved(value: nil, text: nil, origin: .standard)
    }

    /// Whether somebody set `name`, rightly or not.
    func isSet(_ name: SettingName, of credential: String? = nil) -> Bool {
        entry(name, of: credential).origin != .standard
    }

    /// Whether all of `names` are understood, so that they can be compared.
    func areUnderstood(_ names: SettingName...) -> Bool {
        refused.isDisjoint(with: names)
    }

    func duration(_ name: SettingName) -> Duration {
        guard case .duration(let value) = entry(name).value else { return mismatch(name) }
        return value
    }

    func durations(_ name: SettingName) -> [Duration] {
        guard case .durations(let value) = entry(name).value else { return mismatch(name) }
        return value
    }

    func count(_ name: SettingName) -> Int {
        guard case .count(let value) = entry(name).value else { return mismatch(name) }
        return value
    }

    func text(_ name: SettingName, of credential: String? = nil) -> String? {
        guard let value = entry(name, of: credential).value else { return nil }
        guard case .text(let text) = value else { return mismatch(name) }
        return text
    }

    func texts(_ name: SettingName, of credential: String? = nil) -> [String]? {
        guard let value = entry(name, of: credential).value else { return nil }
        guard case .texts(let texts) = value else { return mismatch(name) }
        return texts
    }

    func endpoint(_ name: SettingName) -> HTTPSEndpoint? {
        guard let value = entry(name).value else { return nil }
        guard case .endpoint(let endpoint) = value else { return mismatch(name) }
        return endpoint
    }

    /// The proxy that `name` says; nil when it is not set or says that there is none.
    func proxy(_ name: SettingName) -> HTTPProxy? {
        guard let value = entry(name).value else { return nil }
        guard case .proxy(let proxy) = value else { return mismatch(name) }
        return proxy
    }

    func proxyExceptions(_ name: SettingName) -> ProxyExceptions? {
        guard let value = entry(name).value else { return nil }
        guard case .proxyExceptions(let exceptions) = value else { return mismatch(name) }
        return exceptions
    }

    /// Adds a problem that concerns several settings.
    mutating func report(_ what: String, about names: [SettingName], next: String) {
        report(what, about: names.map { SettingVariable($0) }, next: next)
    }

    /// Adds a problem that concerns several settings, of one credential or several.
    mutating func report(_ what: String, about variables: [SettingVariable], next: String) {
        let places = variables.map { "\($0.text) from \(entry($0.name, of: $0.credential).origin.place)" }
        problems.append(ConfigurationProblem(what: what, place: places.joined(separator: ", "), next: next))
    }

    /// Adds a problem of one or more variables that are no settings.
    mutating func report(_ what: String, aboutUnknown variables: [String], _ sources: SettingSources, next: String) {
        let places = Set(variables.map { sources.origin(of: $0).place }).sorted()
        problems.append(ConfigurationProblem(what: what, place: places.joined(separator: ", "), next: next))
    }

    private mutating func resolve(_ variable: SettingVariable, _ sources: SettingSources) {
        let setting = SettingsTable.setting(variable.name)
        // Whoever set our own variable need not care what others make of theirs.
        let isOverruled = variable.name == .httpsProxy && isSet(.proxy)
        let found = reads(variable.name) && !isOverruled ? sources.text(of: variable) : nil
        let origin = found?.origin ?? .standard
        if let found {
            do throws(ValueFault) {
                let value = try setting.type.parse(found.text)
                resolved[variable] = Resolved(value: value, text: found.text, origin: origin)
                return
            } catch {
                refused.insert(variable.name)
                problems.append(Self.problem(setting, found, error))
            }
        }
        do throws(ValueFault) {
            // A refused value gives way to the default, so that everything else can still be looked at.
            let value = try setting.standard.map { text throws(ValueFault) in try setting.type.parse(text) }
            resolved[variable] = Resolved(value: value, text: setting.standard, origin: origin)
        } catch {
            preconditionFailure("the default of \(variable.text) \(error.what)")
        }
    }

    private static func problem(
        _ setting: Setting, _ found: (name: String, text: String, origin: SettingOrigin), _ fault: ValueFault
    ) -> ConfigurationProblem {
        let shown = setting.type.isPrivate ? "" : " " + QuotedText.quote(found.text)
        return ConfigurationProblem(
            what: "\(found.name)\(shown) \(fault.what)", place: found.origin.place,
            next: setting.type.remedy(example: setting.standard))
    }

    private mutating func refuseUnknownNames(_ sources: SettingSources) {
        let own = SettingName.allCases.map(\.rawValue).filter { $0.hasPrefix(SettingName.ownPrefix) }
        for variable in sources.variables where variable.hasPrefix(SettingName.ownPrefix) && !own.contains(variable) {
            let nearest = NearestName.find(variable, among: own)
            report(
                "\(QuotedText.escape(variable)) is no setting of Postbell", aboutUnknown: [variable], sources,
                next: nearest.map { "did you mean \($0)?" } ?? "remove it (`postbell config` lists all)")
        }
    }

    private func mismatch<Value>(_ name: SettingName) -> Value {
        preconditionFailure("\(name.rawValue) is read as another type than the table has")
    }
}
