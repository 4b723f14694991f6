/// Draws what happens by rate: to a request, and to the connection that it came on.
struct ConnectionChance {
    /// When a connection goes away and when its limit changes, counted in its requests from now.
    struct Fate {
        fileprivate(set) var goAwayIn = Int.max
        fileprivate(set) var limitChangeIn = Int.max
    }

    /// A GOAWAY: which streams it covers beyond the one that it strikes at (negative: not even that one), and whether
    /// one that covers all of them comes before it.
    struct Departure {
        let streamsBeyond: Int32
        let isAnnounced: Bool
    }

    /// What happens with a request.
    enum Event {
        case nothing
        case refused
        case departure(Departure)
    }

    private let rates: MisbehaviourRates
    private var draws: SeededDraws

    init(_ rates: MisbehaviourRates) {
        self.rates = rates
        draws = SeededDraws(seed: rates.seed)
    }

    /// What awaits a new connection.
    mutating func fate() -> Fate {
        var fate = Fate()
        if let range = rates.goAwayAfter { fate.goAwayIn = .random(in: range, using: &draws) }
        if let range = rates.limitChangesAfter { fate.limitChangeIn = .random(in: range, using: &draws) }
        return fate
    }

    /// What happens with the next request of a connection.
    mutating func event(_ fate: inout Fate) -> Event {
        fate.goAwayIn -= 1
        if fate.goAwayIn <= 0 {
            fate.goAwayIn = .max
            return .departure(
                Departure(streamsBeyond: .random(in: -1...8, using: &draws), isAnnounced: .random(using: &draws)))
        }
        guard rates.refusedPerMille > 0 else { return .nothing }
        return Int.random(in: 0..<1000, using: &draws) < rates.refusedPerMille ? .refused : .nothing
    }

    /// The stream limit that a connection gets after a request; nil for the one that it has.
    mutating func newLimit(_ fate: inout Fate) -> UInt32? {
        fate.limitChangeIn -= 1
        guard fate.limitChangeIn <= 0, let range = rates.limitChangesAfter else { return nil }
        fate.limitChangeIn = .random(in: range, using: &draws)
        // The ends are what breaks clients, and a uniform draw hardly ever meets the lower one.
        switch Int.random(in: 0..<4, using: &draws) {
        case 0: return rates.limits.lowerBound
        case 1: return rates.limits.upperBound
        default: return .random(in: rates.limits, using: &draws)
        }
    }
}
