/// What must hold among the credentials of a provider: each is complete and listed, and no two serve the same devices.
struct CredentialRules {
    private let provider: CredentialSettings

    init(_ provider: CredentialSettings) {
        self.provider = provider
    }

    /// Adds a problem for each rule that is broken.
    func check(_ settings: inout ResolvedSettings, _ sources: SettingSources) {
        guard settings.reads(provider.list) else { return }
        for credential in settings.credentials(provider) { checkCompleteness(credential, &settings) }
        if settings.areUnderstood(provider.list) {
            checkListing(&settings, sources)
            checkPresence(&settings)
        }
        let credentials = settings.credentials(provider)
        for (index, second) in credentials.enumerated() {
            for first in credentials[..<index] {
                if provider.provider == "apns" {
                    checkTopics(first, second, &settings)
                    checkKeys(first, second, &settings)
                } else {
                    checkApps(first, second, &settings)
                }
            }
        }
    }

    // MARK: One credential

    /// The parts of a credential come together.
    private func checkCompleteness(_ credential: String, _ settings: inout ResolvedSettings) {
        let present = provider.parts.filter { settings.isSet($0, of: credential) }
        let missing = provider.required.filter { !settings.isSet($0, of: credential) }
        guard !missing.isEmpty else { return }
        let names = list(missing, of: credential)
        if present.isEmpty {
            settings.report(
                "the \(provider.title) credential \(credential) is listed and has no settings", about: [provider.list],
                next: "set \(names), or take it out of the list")
        } else {
            settings.report(
                "the \(provider.title) credential \(credential) is not complete",
                about: present.map { SettingVariable($0, of: credential) }, next: "set \(names) too")
        }
    }

    /// What is set for a credential that nobody listed, or is no part of one that is.
    private func checkListing(_ settings: inout ResolvedSettings, _ sources: SettingSources) {
        let listed = settings.texts(provider.list) ?? []
        let plain = provider.parts.map(\.rawValue)
        var unlisted: [String: [String]] = [:]
        for variable in sources.variables where sources.text(of: variable) != nil && !plain.contains(variable) {
            if let (credential, _) = provider.named(by: variable) {
                if !listed.contains(credential) { unlisted[credential, default: []].append(variable) }
            } else if let owner = listed.first(where: { variable.hasPrefix(provider.prefix + $0.uppercased() + "_") }) {
                let parts = provider.parts.map { SettingVariable($0, of: owner).text }
                let nearest = NearestName.find(variable, among: parts)
                settings.report(
                    "\(QuotedText.escape(variable)) is no setting of the \(provider.title) credential \(owner)",
                    aboutUnknown: [variable], sources,
                    next: nearest.map { "did you mean \($0)?" } ?? "its settings are \(parts.joined(separator: ", "))")
            }
        }
        for (credential, variables) in unlisted.sorted(by: { $0.key < $1.key }) {
            settings.report(
                "\(variables.joined(separator: ", ")) \(variables.count == 1 ? "belongs" : "belong") to no credential"
                    + " of \(provider.list.rawValue)",
                aboutUnknown: variables, sources, next: remedy(unlisted: credential, listed))
        }
    }

    private func remedy(unlisted credential: String, _ listed: [String]) -> String {
        if credential == CredentialName.standard {
            return "take \(credential.uppercased())_ out of the name: the credential \(credential) has none"
        }
        let known = listed.filter { $0 != credential }
        if let nearest = NearestName.find(credential, among: known) { return "did you mean \(nearest)?" }
        return "add \(credential) to \(provider.list.rawValue), or unset it"
    }

    /// A provider that is asked for has a credential.
    private func checkPresence(_ settings: inout ResolvedSettings) {
        guard settings.credentials(provider).isEmpty,
            settings.texts(.providers)?.contains(provider.provider) == true
        else { return }
        settings.report(
            "\(SettingName.providers.rawValue) asks for \(provider.provider), which has no credential",
            about: [.providers], next: "set \(list(provider.required, of: nil))")
    }

    private func list(_ parts: [SettingName], of credential: String?) -> String {
        parts.map { SettingVariable($0, of: credential).text }.joined(separator: ", ")
    }

    // MARK: Two credentials

    /// A topic in one environment belongs to one credential, or nobody could say which of two sends.
    private func checkTopics(_ first: String, _ second: String, _ settings: inout ResolvedSettings) {
        let topics = settings.texts(.topic, of: second) ?? []
        let environments = settings.environments(ofAPNS: first).filter {
            settings.environments(ofAPNS: second).contains($0)
        }
        guard let topic = settings.texts(.topic, of: first)?.first(where: topics.contains), !environments.isEmpty,
            settings.areUnderstood(.topic, .apnsEnvironment)
        else { return }
        let limits =
            "\(SettingVariable(.apnsEnvironment, of: first).text) and "
            + SettingVariable(.apnsEnvironment, of: second).text
        settings.report(
            "the topic \(topic) in \(environments.joined(separator: " and ")) is of both APNs credentials, \(first) and"
                + " \(second)",
            about: [SettingVariable(.topic, of: first), SettingVariable(.topic, of: second)],
            next: "take it out of one of them, or give each an environment by \(limits)")
    }

    /// Apple counts provider tokens per key, so what has one key has one file, from which one token is made.
    private func checkKeys(_ first: String, _ second: String, _ settings: inout ResolvedSettings) {
        func same(_ part: SettingName) -> Bool {
            guard let value = settings.text(part, of: first) else { return false }
            return settings.text(part, of: second) == value
        }
        guard same(.keyID), same(.teamID), !same(.keyFile), settings.text(.keyFile, of: first) != nil,
            settings.text(.keyFile, of: second) != nil
        else { return }
        settings.report(
            "the APNs credentials \(first) and \(second) name one key and two files",
            about: [SettingVariable(.keyFile, of: first), SettingVariable(.keyFile, of: second)],
            next: "name the same file in both, or correct the key id of one")
    }

    /// An app belongs to one credential.
    private func checkApps(_ first: String, _ second: String, _ settings: inout ResolvedSettings) {
        guard settings.areUnderstood(.fcmApp) else { return }
        let variables = [SettingVariable(.fcmApp, of: first), SettingVariable(.fcmApp, of: second)]
        let apps = settings.texts(.fcmApp, of: first)
        let others = settings.texts(.fcmApp, of: second)
        guard let apps, let others else {
            let unbounded = apps == nil ? variables[0] : variables[1]
            settings.report(
                "the FCM credential \(unbounded.credential ?? CredentialName.standard) serves all apps, and"
                    + " \(apps == nil ? second : first) is there too",
                about: variables, next: "set \(unbounded.text) to the apps of its project")
            return
        }
        guard let app = apps.first(where: others.contains) else { return }
        settings.report(
            "the app \(app) is of both FCM credentials, \(first) and \(second)", about: variables,
            next: "take it out of one of them")
    }
}
