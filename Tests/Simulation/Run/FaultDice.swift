package import OutboxCore

/// Decides on each occasion whether a fault strikes. Each occasion has a draw of its own, so that leaving out one fault
/// changes no other draw: what makes a failing run smaller.
package struct Dice<Kind: FaultName> {
    private let seed: UInt64
    private let rates: [Double]
    /// The faults that may strike; nil for all.
    private let allowed: Set<Occasion<Kind>>?
    /// How often each kind struck, by its number.
    package private(set) var counts = [Int](repeating: 0, count: Kind.allCases.count)
    /// What struck, in order.
    package private(set) var struck: [Occasion<Kind>] = []
    /// Whether faults may strike at all.
    package var isOn = true

    /// Dice of a seed: `rates` has the share of occasions for each kind, by its number.
    package init(seed: UInt64, rates: [Double], allowed: Set<Occasion<Kind>>?) {
        self.seed = seed
        self.rates = rates
        self.allowed = allowed
    }

    /// A generator for one occasion.
    package func generator(_ stream: Int, _ occasion: Int, _ salt: Int) -> SplitMix {
        var mixer = SplitMix(seed: seed ^ UInt64(truncatingIfNeeded: stream) &* 0x9E37_79B9_7F4A_7C15)
        let first = mixer.next()
        return SplitMix(
            seed: first ^ UInt64(truncatingIfNeeded: occasion) &* 0xD6E8_FEB8_6659_FD93
                ^ UInt64(truncatingIfNeeded: salt) &* 0xA076_1D64_78BD_642F)
    }

    /// Whether the fault strikes on this occasion; `weight` times as often as its rate says.
    package mutating func strikes(_ kind: Kind, _ stream: Int, _ occasion: Int, weight: Double = 1) -> Bool {
        let rate = rates[kind.rawValue] * weight
        guard isOn, rate > 0 else { return false }
        var generator = generator(stream, occasion, kind.rawValue + 1)
        guard generator.fraction() < rate else { return false }
        return happens(Occasion(kind: kind, stream: stream, occasion: occasion))
    }

    /// A fault that was drawn elsewhere comes to pass, unless it is left out.
    package mutating func happens(_ key: Occasion<Kind>) -> Bool {
        guard isOn, allowed?.contains(key) ?? true else { return false }
        counts[key.kind.rawValue] += 1
        struck.append(key)
        return true
    }

    /// A whole number from `range`, for this occasion.
    package func draw(_ range: ClosedRange<Int>, _ stream: Int, _ occasion: Int, salt: Int) -> Int {
        var generator = generator(stream, occasion, salt + 1000)
        return Int.random(in: range, using: &generator)
    }
}

/// A closed list of what can go wrong.
package protocol FaultName: RawRepresentable<Int>, CaseIterable, Hashable, Sendable {}

/// One occasion on which a fault struck: kind, stream of occasions (a worker, a notification), number in the stream.
package struct Occasion<Kind: FaultName>: Hashable, Sendable {
    /// What strikes.
    package let kind: Kind
    let stream: Int
    let occasion: Int
}

typealias FaultDice = Dice<FaultKind>
typealias FaultKey = Occasion<FaultKind>
