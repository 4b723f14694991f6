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
