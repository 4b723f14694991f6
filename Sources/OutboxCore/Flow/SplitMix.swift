/// A small seeded generator (SplitMix64; Steele, Lea, Flood 2014): same seed, same decisions, so that a simulation can
/// be repeated. Not for secrets.
package struct SplitMix: RandomNumberGenerator, Equatable, Sendable {
    private var state: UInt64

    /// A generator that gives the same numbers for the same seed.
    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A draw from 0..<1.
    package mutating func fraction() -> Double {
        Double(next() >> 11) * 0x1p-53
    }
}

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
