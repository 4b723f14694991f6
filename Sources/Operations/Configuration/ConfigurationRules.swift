/// What must hold between settings, beyond each one's own range.
enum ConfigurationRules {
    /// What settling a finished request takes at most besides the wait for others: a lease must outlast it.
    static let settleStatement: Duration = .seconds(2)

    /// Adds a problem for each rule that is broken.
    static func check(_ settings: inout ResolvedSettings, _ sources: SettingSources) {
        checkLease(&settings)
        checkStop(&settings)
        for provider in CredentialSettings.all { CredentialRules(provider).check(&settings, sources) }
    }

    private static func checkLease(_ settings: inout ResolvedSettings) {
        guard settings.areUnderstood(.lease, .requestTimeout, .settleDelay) else { return }
        let lease = settings.duration(.lease)
        let needed = settings.duration(.requestTimeout) + settings.duration(.settleDelay) + settleStatement
        guard lease <= needed else { return }
        settings.report(
            "\(SettingName.lease.rawValue) \(DurationText.format(lease)) is not longer than a request and its settling,"
                + " \(DurationText.format(needed))",
            about: [.lease, .requestTimeout, .settleDelay],
            next: "raise \(SettingName.lease.rawValue) or lower \(SettingName.requestTimeout.rawValue)")
    }

    private static func checkStop(_ settings: inout ResolvedSettings) {
        guard settings.areUnderstood(.stopTimeout, .requestTimeout) else { return }
        let stop = settings.duration(.stopTimeout)
        let request = settings.duration(.requestTimeout)
        guard stop < request else { return }
        settings.report(
            "\(SettingName.stopTimeout.rawValue) \(DurationText.format(stop)) would cut requests off, which may take"
                + " \(SettingName.requestTimeout.rawValue) \(DurationText.format(request))",
            about: [.stopTimeout, .requestTimeout],
            next: "raise \(SettingName.stopTimeout.rawValue) or lower \(SettingName.requestTimeout.rawValue)")
    }
}
