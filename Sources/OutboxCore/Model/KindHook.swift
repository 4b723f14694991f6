/// What a hook of a kind is asked about notifications that are to be sent.
package enum HookPurpose: String, CaseIterable, Sendable {
    /// Which of them are over?
    case stale
    /// Which of them may their principal still see?
    case access
}

/// A function of the app that is asked before a kind's notifications are sent.
package struct KindHook: Equatable, Sendable {
    /// The name of the kind, all of whose revisions it answers for.
    package let kind: String
    /// What it is asked.
    package let purpose: HookPurpose
    /// How long one call of it may take.
    package let timeout: Duration

    /// A hook as the catalog has it.
    package init(kind: String, purpose: HookPurpose, timeout: Duration) {
        self.kind = kind
        self.purpose = purpose
        self.timeout = timeout
    }
}
