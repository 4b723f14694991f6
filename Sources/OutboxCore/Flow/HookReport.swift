/// Hooks of a kind that fail, as the registry of workers shows it to people.
package struct HookReport: Equatable, Sendable {
    /// The kind's name.
    package let kind: String
    /// What they fail by.
    package let reason: String
    /// Since when.
    package let since: Timestamp
    /// When they are asked again.
    package let until: Timestamp

    /// Hooks that fail.
    package init(kind: String, reason: String, since: Timestamp, until: Timestamp) {
        self.kind = kind
        self.reason = reason
        self.since = since
        self.until = until
    }
}

extension DispatchState {
    /// The kinds that nothing is sent of because their hooks fail, in the database's time.
    package var hookReports: [HookReport] {
        hookedKinds.compactMap { kind in
            kind.failure.map {
                HookReport(
                    kind: kind.name, reason: $0.fault.text, since: clock.time(at: $0.since),
                    until: clock.time(at: $0.retryAt))
            }
        }
    }
}
