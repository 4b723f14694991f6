/// Time-ordered identifiers that ascend strictly within one worker, so that batches of them need no sorting.
package struct LedgerIdentifiers: Equatable, Sendable {
    private var last = Identifier(high: 0, low: 0)

    /// Identifiers above none.
    package init() {}

    /// The next identifier, of the millisecond of `time` or, when the clock stood still or went back, of the last one.
    package mutating func next(at time: Timestamp, using random: inout SplitMix) -> Identifier {
        let fresh = Identifier.timeOrdered(at: time, using: &random)
        if fresh.high >> 16 > last.high >> 16 {
            last = fresh
        } else {
            // Counting up from a random start; the variant bits stay, a carry of 2^62 does not happen.
            last = Identifier(high: last.high, low: last.low + 1)
        }
        return last
    }
}
