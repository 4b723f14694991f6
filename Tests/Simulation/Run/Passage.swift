/// What runs have to come through, beside faults, for them to count.
package enum Passage: Int, CaseIterable, Sendable {
    /// What people and back ends did: it was told that a subject was seen, a thread was erased; an operator cancelled
    /// or enqueued anew; a device came to another route.
    case told, erased, cancelled, requeued, rerouted
    /// The claim found a fact against a row.
    case supersededAtClaim, seenAtClaim, erasedAtClaim
    /// The re-check found one.
    case supersededAtCheck, seenAtCheck, erasedAtCheck
    /// A row that nobody claimed ended by a fact, in the wait for a device or by the sweep.
    case endedUnclaimed
    /// Hooks were set or taken away while workers ran; a call was answered, or failed; it named a notification.
    case hooksChanged, hooksAnswered, hooksFailed, staleByHook, noAccessByHook
    /// A crash was counted because the registry had not heard of the worker; a recovery left alone what had lapsed
    /// after it was sent.
    case deadByRegistry, lapsedLater
    /// A deadline passed between the last check and the send.
    case expiredAtSend

    /// The name in reports.
    package var name: String { "\(self)" }
}
