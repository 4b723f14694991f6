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
    private var resolved: [SettingName: Resolved] = [:]
    /// Settings whose text was not understood.
    private(set) var refused: Set<SettingName> = []

    /// Resolves what `command` reads; everything else is as if not set. `config` and `check` read all.
    init(_ sources: SettingSources, for command: CommandName) {
        for name in SettingName.allCases {
            let setting = SettingsTable.setting(name)
            let isRead = command.readsAll || setting.commands.contains(command)
            resolve(setting, isRead ? sources.text(of: name.rawValue) : nil)
        }
        refuseUnknownNames(sources)
    }

    /// The value and origin of `name`.
    func entry(_ name: SettingName) -> Resolved {
        resolved[name] ?? Resolved(value: nil, text: nil, origin: .standard)
    }

    /// Whether somebody set `name`, rightly or not.
    func isSet(_ name: SettingName) -> Bool {
        entry(name).origin != .standard
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

    func text(_ name: SettingName) -> String? {
        guard let value = entry(name).value else { return nil }
        guard case .text(let text) = value else { return mismatch(name) }
        return text
    }

    func texts(_ name: SettingName) -> [String]? {
        guard let value = entry(name).value else { return nil }
        guard case .texts(let texts) = value else { return mismatch(name) }
        return texts
    }

    func endpoint(_ name: SettingName) -> HTTPSEndpoint? {
        guard let value = entry(name).value else { return nil }
        guard case .endpoint(let endpoint) = value else { return mismatch(name) }
        return endpoint
    }

    /// Adds a problem that concerns several settings.
    mutating func report(_ what: String, about names: [SettingName], next: String) {
        let places = names.map { "\($0.rawValue) from \(entry($0).origin.place)" }
        problems.append(ConfigurationProblem(what: what, place: places.joined(separator: ", "), next: next))
    }

    private mutating func resolve(_ setting: Setting, _ found: (text: String, origin: SettingOrigin)?) {
        let name = setting.name
        let origin = found?.origin ?? .standard
        if let text = found?.text {
            do throws(ValueFault) {
                resolved[name] = Resolved(value: try setting.type.parse(text), text: text, origin: origin)
                return
            } catch {
                refused.insert(name)
                problems.append(Self.problem(setting, text, origin, error))
            }
        }
        do throws(ValueFault) {
            // A refused value gives way to the default, so that everything else can still be looked at.
            let value = try setting.standard.map { text throws(ValueFault) in try setting.type.parse(text) }
            resolved[name] = Resolved(value: value, text: setting.standard, origin: origin)
        } catch {
            preconditionFailure("the default of \(name.rawValue) \(error.what)")
        }
    }

    private static func problem(
        _ setting: Setting, _ text: String, _ origin: SettingOrigin, _ fault: ValueFault
    ) -> ConfigurationProblem {
        let shown = setting.type.isPrivate ? "" : " " + QuotedText.quote(text)
        return ConfigurationProblem(
            what: "\(setting.name.rawValue)\(shown) \(fault.what)", place: origin.place,
            next: setting.type.remedy(example: setting.standard))
    }

    private mutating func refuseUnknownNames(_ sources: SettingSources) {
        let own = SettingName.allCases.map(\.rawValue).filter { $0.hasPrefix(SettingName.ownPrefix) }
        for variable in sources.variables where variable.hasPrefix(SettingName.ownPrefix) && !own.contains(variable) {
            let line = sources.environment[variable] == nil ? sources.file?.entries[variable]?.line : nil
            let origin = line.map { SettingOrigin.file(path: sources.file?.path ?? "", line: $0) } ?? .environment
            let nearest = NearestName.find(variable, among: own)
            problems.append(
                ConfigurationProblem(
                    what: "\(QuotedText.escape(variable)) is no setting of Postbell", place: origin.place,
                    next: nearest.map { "did you mean \($0)?" } ?? "remove it (`postbell config` lists all)"))
        }
    }

    private func mismatch<Value>(_ name: SettingName) -> Value {
        preconditionFailure("\(name.rawValue) is read as another type than the table has")
    }
}
