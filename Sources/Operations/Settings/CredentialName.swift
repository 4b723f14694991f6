/// Names of a provider's credentials: the one that its plain variables make, and those that a list adds.
enum CredentialName {
    /// The credential of `APNS_KEY_FILE` and its companions, or of `FCM_SERVICE_ACCOUNT_FILE`.
    static let standard = "default"

    /// Longest name; it is part of a lane's name, which people read.
    static let limit = 16

    /// Whether `text` can be a name: a variable's name must tell it from the part behind it.
    static func isValid(_ text: some StringProtocol) -> Bool {
        guard let first = text.utf8.first, !first.isDigit, text.utf8.count <= limit else { return false }
        return text.isMade { $0.isDigit || ($0.isLetter && !$0.isCapital) }
    }
}

/// The settings that a provider has once per credential.
struct CredentialSettings: Sendable {
    /// The provider's name, as routes have it.
    let provider: String
    /// What it is called for people.
    let title: String
    /// The setting that lists the names of further credentials.
    let list: SettingName
    /// The prefix of the parts' variables, behind which the name of a further credential goes.
    let prefix: String
    /// Parts without which there is no credential.
    let required: [SettingName]
    /// Parts that have a meaning when they are not set.
    let optional: [SettingName]

    /// All parts.
    var parts: [SettingName] { required + optional }

    static let apns = CredentialSettings(
        provider: "apns", title: "APNs", list: .apnsCredentials, prefix: "APNS_",
        required: [.keyFile, .keyID, .teamID, .topic], optional: [.apnsEnvironment])
    static let fcm = CredentialSettings(
        provider: "fcm", title: "FCM", list: .fcmCredentials, prefix: "FCM_", required: [.serviceAccountFile],
        optional: [.fcmApp])
    static let all = [apns, fcm]

    /// The provider whose part `name` is; nil for a setting that exists once.
    static func having(_ name: SettingName) -> CredentialSettings? {
        all.first { $0.parts.contains(name) }
    }

    /// The credential and the part that `variable` names, whether anybody listed it or not; nil for another variable,
    /// those of the standard credential among them.
    func named(by variable: String) -> (credential: String, part: SettingName)? {
        for part in parts {
            let suffix = "_" + part.rawValue.dropFirst(prefix.count)
            guard variable.hasPrefix(prefix), variable.hasSuffix(suffix) else { continue }
            let middle = variable.dropFirst(prefix.count).dropLast(suffix.count)
            guard middle.utf8.count + prefix.utf8.count + suffix.utf8.count == variable.utf8.count else { continue }
            let name = middle.lowercased()
            if middle == name.uppercased(), CredentialName.isValid(name) { return (name, part) }
        }
        return nil
    }
}

/// A setting, or a part of one credential: what one environment variable holds.
package struct SettingVariable: Hashable, Sendable {
    /// The row of the table.
    package let name: SettingName
    /// Whose part it is: nil for the standard credential, and for a setting that exists once.
    package let credential: String?

    /// The variable of `name`, for a further credential by its name.
    package init(_ name: SettingName, of credential: String? = nil) {
        self.name = name
        self.credential = credential == CredentialName.standard ? nil : credential
    }

    /// As it stands in the environment: `APNS_KEY_FILE`, and for a credential `ios` `APNS_IOS_KEY_FILE`.
    package var text: String {
        guard let credential, let settings = CredentialSettings.having(name) else { return name.rawValue }
        return settings.prefix + credential.uppercased() + "_" + name.rawValue.dropFirst(settings.prefix.count)
    }
}
