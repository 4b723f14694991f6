extension Configuration {
    /// The APNs side.
    package struct APNS: Sendable, Equatable {
        /// One signing key and what it is for.
        package struct Credential: Sendable, Equatable {
            /// `default`, or as it was listed; the last part of its lanes' names.
            package let name: String
            /// Path of the PKCS#8 file, with the directory of systemd's credentials before it where that applies.
            package let keyFile: String
            /// The directory of systemd's credentials, whose files have permissions of their own; nil without one.
            package let credentialsDirectory: String?
            /// Ten letters and digits.
            package let keyID: String
            /// Ten letters and digits.
            package let teamID: String
            /// Bundle ids; at least one.
            package let topics: [String]
            /// `production`, `sandbox` or both.
            package let environments: [String]

            /// The environment variable of one of its parts.
            package func variable(_ part: SettingName) -> String { SettingVariable(part, of: name).text }
        }

        /// Empty when there is none, or when this worker is not to serve APNs. No two share a topic in one environment.
        package let credentials: [Credential]
        /// Instead of both of Apple's hosts; to be said loudly at start.
        package let endpoint: HTTPSEndpoint?
        /// Age at which the provider token is made anew.
        package let tokenRefresh: Duration
        /// Shortest wait after a 500 or 503.
        package let serverErrorDelay: Duration
        /// Pause of a misconfigured lane.
        package let pause: Duration
    }

    /// The FCM side.
    package struct FCM: Sendable, Equatable {
        /// One service account and what it is for.
        package struct Credential: Sendable, Equatable {
            /// `default`, or as it was listed; the last part of its lane's name.
            package let name: String
            /// Path of the JSON file, with the directory of systemd's credentials before it where that applies.
            package let serviceAccountFile: String
            /// The directory of systemd's credentials, whose files have permissions of their own; nil without one.
            package let credentialsDirectory: String?
            /// The apps that it serves; nil for all, and then there is no other credential.
            package let apps: [String]?

            /// The environment variable of one of its parts.
            package func variable(_ part: SettingName) -> String { SettingVariable(part, of: name).text }
        }

        /// Empty when there is none, or when this worker is not to serve FCM. No two share an app.
        package let credentials: [Credential]
        /// Instead of Google's host for messages; to be said loudly at start.
        package let endpoint: HTTPSEndpoint?
        /// Instead of Google's host for access tokens; to be said loudly at start.
        package let tokenEndpoint: HTTPSEndpoint?
        /// Shortest wait after a 429 without one of its own.
        package let quotaDelay: Duration
        /// Pause of a misconfigured lane.
        package let pause: Duration
    }
}

extension Configuration.APNS {
    init(_ settings: ResolvedSettings, _ directory: String?) {
        credentials = settings.served(.apns).compactMap { Credential($0, settings, directory) }
        endpoint = settings.endpoint(.apnsEndpoint)
        tokenRefresh = settings.duration(.tokenRefresh)
        serverErrorDelay = settings.duration(.serverErrorDelay)
        pause = settings.duration(.apnsPause)
    }
}

extension Configuration.APNS.Credential {
    fileprivate init?(_ name: String, _ settings: ResolvedSettings, _ directory: String?) {
        guard let path = settings.text(.keyFile, of: name), let keyID = settings.text(.keyID, of: name),
            let teamID = settings.text(.teamID, of: name), let topics = settings.texts(.topic, of: name)
        else { return nil }
        self.name = name
        keyFile = Configuration.path(path, in: directory)
        credentialsDirectory = directory
        self.keyID = keyID
        self.teamID = teamID
        self.topics = topics
        environments = settings.environments(ofAPNS: name)
    }
}

extension Configuration.FCM {
    init(_ settings: ResolvedSettings, _ directory: String?) {
        credentials = settings.served(.fcm).compactMap { name in
            settings.text(.serviceAccountFile, of: name).map { path in
                Credential(
                    name: name, serviceAccountFile: Configuration.path(path, in: directory),
                    credentialsDirectory: directory, apps: settings.texts(.fcmApp, of: name))
            }
        }
        endpoint = settings.endpoint(.fcmEndpoint)
        tokenEndpoint = settings.endpoint(.fcmTokenEndpoint)
        quotaDelay = settings.duration(.quotaDelay)
        pause = settings.duration(.fcmPause)
    }
}

extension Configuration {
    /// A credential's path: below the directory of systemd's credentials when there is one and the path is relative.
    fileprivate static func path(_ path: String, in directory: String?) -> String {
        directory.map { path.hasPrefix("/") ? path : "\($0)/\(path)" } ?? path
    }
}

extension ResolvedSettings {
    /// The credentials of a provider that this worker is to serve.
    fileprivate func served(_ provider: CredentialSettings) -> [String] {
        texts(.providers)?.contains(provider.provider) ?? true ? credentials(provider) : []
    }

    /// The environments of an APNs credential: both, unless it says otherwise.
    func environments(ofAPNS credential: String) -> [String] {
        texts(.apnsEnvironment, of: credential) ?? ["production", "sandbox"]
    }
}
