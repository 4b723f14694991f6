/// The unsent rows of one lease whose kind has hooks.
///
/// States: waiting (→ asking when a call takes them); asking (→ clear by its answer, else they leave the lease); clear
/// (→ sent, or → waiting when the answer has grown too old). From each of them they may be released.
struct HookedRows: Equatable, Sendable {
    enum Stage: Equatable, Sendable {
        case waiting
        case asking(call: Int)
        /// They may be sent until then.
        case clear(until: ContinuousClock.Instant)
    }

    /// Which kind, by its place among those that have had hooks.
    let kind: Int
    /// The targets, ascending.
    var targets: ArraySlice<Int32>
    /// Until when the last check of the facts that the claim evaluated counts.
    var conditionsHoldUntil: ContinuousClock.Instant
    var stage = Stage.waiting

    /// Whether the hooks have let them through.
    var isClear: Bool {
        if case .clear = stage { true } else { false }
    }
}
