/// What happens to a target after an attempt: the judgement on one outcome or fault.
package enum Disposition: Equatable, Sendable {
    /// Nothing more happens to this target.
    case final
    /// Nothing more happens to this target, and the notification failed by it.
    case failed(SettlementReason)
    /// Tried again after the wait; the attempt counts.
    case retry(Duration)
    /// Tried again after the wait; the attempt does not count (throttled, a wrong configuration, a replaced token).
    case hold(Duration)
    /// Never left: back to the queue for the wait, without a trace on the ledger.
    case release(Duration)
    /// Its next attempt, after this wait, would come after the deadline.
    case expired(Duration)

    /// How long the target is left out of claims; nil where nothing more happens or nothing was sent.
    package var wait: Duration? {
        switch self {
        case .final, .failed, .release: nil
        case .retry(let wait), .hold(let wait), .expired(let wait): wait
        }
    }

    /// Whether the target is final on the ledger. One that runs into its deadline is not: its end is the settlement.
    package var isFinal: Bool {
        switch self {
        case .final, .failed: true
        case .retry, .hold, .release, .expired: false
        }
    }
}
