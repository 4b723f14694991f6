/// A configuration as the doctor sees it: what is wrong is a list, and everything else can be looked at all the same.
struct ExaminedConfiguration {
    /// Settings that were refused have their defaults here.
    let configuration: Configuration
    let items: [CheckItem]
    private let refused: Set<SettingName>

    init(_ sources: SettingSources, for command: CommandName) {
        let (configuration, settings) = Configuration.examine(sources, for: command)
        self.configuration = configuration
        refused = settings.refused
        if settings.problems.isEmpty {
            let count = SettingName.allCases.count { settings.isSet($0) }
            items = [
                .ok(.configuration, "\(count) of \(SettingName.allCases.count) settings are set, and fit together")
            ]
        } else {
            items = CheckItem.failures(
                .configuration, CommandFailure(ConfigurationProblems(problems: settings.problems)))
        }
    }

    /// Whether a refused setting decides about `topic`, so that a look at it would be one at something else.
    func concerns(_ topic: CheckTopic) -> Bool {
        let names: Set<SettingName> =
            switch topic {
            case .credential: Self.credential
            case .endpoint: Self.credential.union(Self.endpoint)
            default: [.databaseURL]
            }
        return !refused.isDisjoint(with: names)
    }

    private static let credential = Set(CredentialSettings.all.flatMap { [$0.list] + $0.parts } + [.providers])
    private static let endpoint: Set<SettingName> = [
        .apnsEndpoint, .fcmEndpoint, .fcmTokenEndpoint, .certificateFile, .proxy, .httpsProxy, .noProxy,
    ]
}
