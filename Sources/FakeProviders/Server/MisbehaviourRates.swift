/// Misbehaviour that strikes by rate, whatever the token: drawn from a seed, so that a run can be repeated as far as
/// its requests arrive in the same order.
package struct MisbehaviourRates: Equatable, Sendable {
    /// Where the draws begin.
    package var seed: UInt64 = 1
    /// How many requests a connection serves before it goes away, drawn anew for each; nil for no end. Streams that the
    /// GOAWAY leaves out are not looked at; about half of the GOAWAYs are announced by one that leaves none out.
    package var goAwayAfter: ClosedRange<Int>?
    /// Of 1000 requests, how many are refused: REFUSED_STREAM, and STREAM_CLOSED behind it.
    package var refusedPerMille = 0
    /// How many requests a connection serves before its stream limit changes, drawn anew each time; nil for no change.
    package var limitChangesAfter: ClosedRange<Int>?
    /// The stream limits that are drawn from; as often as not one of its ends.
    package var limits: ClosedRange<UInt32> = 1...1000

    /// No misbehaviour.
    package init() {}
}
