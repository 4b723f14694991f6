/// One call of a kind's hooks: what to ask, and for which rows of which leases.
package struct HookCall: Equatable, Sendable {
    /// The rows of one lease that wait for the answer.
    package struct Part: Equatable, Sendable {
        /// The lease's slot.
        package let slot: Int
        /// The targets, as indices of the batch's `targets`, in ascending order.
        package let targets: [Int32]
    }

    /// Names the call: an answer counts for the rows that still wait for this very call.
    package let number: Int
    /// The hooks to ask, all of one kind, one after the other.
    package let hooks: [KindHook]
    /// The notifications to ask about, each once.
    package let notifications: [Identifier]
    /// The rows that wait for the answer.
    package let parts: [Part]
    /// Which kind, by its place among those that have had hooks.
    let kind: Int
}

/// What became, for one part of a call, of the facts that the claim evaluated.
package enum HookConditions: Equatable, Sendable {
    /// The last check of them still counts.
    case young
    /// They were evaluated again by a statement sent at this instant: a reason for each target that fell out.
    case answered([SettlementReason?], askedAt: ContinuousClock.Instant)
    /// They could not be evaluated.
    case failed
}

/// What an operator has to know about the hooks of a kind.
package enum HookAlarm: Equatable, Sendable {
    /// Its hooks have begun to fail: nothing of the kind is sent.
    case failing(kind: String, HookFault, retryAfter: Duration)
    /// Its hooks answer again, or are gone; they failed for so long.
    case answers(kind: String, after: Duration)
}
