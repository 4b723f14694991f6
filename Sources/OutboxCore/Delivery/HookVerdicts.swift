/// What one hook answered: ids, as they came.
package struct HookReply: Equatable, Sendable {
    /// Which of the kind's hooks.
    package let purpose: HookPurpose
    /// The ids; nil for a null.
    package let identifiers: [Identifier?]

    /// An answer of one hook.
    package init(_ purpose: HookPurpose, _ identifiers: [Identifier?]) {
        self.purpose = purpose
        self.identifiers = identifiers
    }
}

/// What the answers of a kind's hooks come to, per notification.
package struct HookVerdicts: Equatable, Sendable {
    private var stale: Set<Identifier> = []
    /// Nil: the kind has no hook for access.
    private var accessible: Set<Identifier>?

    /// Judges the replies of one call about `asked`. Throws when one names what was not asked about: a function that
    /// mixes rows up is not to be believed about any. The same id twice is the same answer.
    package init(_ replies: [HookReply], asked: [Identifier]) throws(HookFault) {
        let asked = Set(asked)
        for reply in replies {
            var answered: Set<Identifier> = []
            for identifier in reply.identifiers {
                guard let identifier, asked.contains(identifier) else { throw HookFault(reply.purpose, .foreignAnswer) }
                answered.insert(identifier)
            }
            switch reply.purpose {
            case .stale: stale.formUnion(answered)
            case .access: accessible = answered
            }
        }
    }

    /// Why a notification falls out; nil when it may be sent.
    package func reason(for notification: Identifier) -> SettlementReason? {
        if stale.contains(notification) { return .superseded }
        if let accessible, !accessible.contains(notification) { return .noAccess }
        return nil
    }
}
