extension LeasedBatch {
    /// Cleared targets whose kinds have hooks.
    var clearTargets: Int {
        hooked.reduce(0) { $0 + ($1.isClear ? $1.targets.count : 0) }
    }

    /// Takes the unsent targets of kinds that have hooks apart from the others. `numbers` says which kinds those are.
    /// Answers whether there are any.
    mutating func setAsideHooked(_ numbers: [KindNumber: Int]) -> Bool {
        var plain: [Int32] = []
        var parts: [HookedRows] = []
        var known: (number: KindNumber, kind: Int?)?
        for (place, target) in unsent.enumerated() {
            let number = claimed.dispatch(ofTarget: Int(target)).kind
            // Rows of one kind mostly follow one another.
            if known?.number != number { known = (number, numbers[number]) }
            guard let kind = known?.kind else {
                // Nothing is copied for a lease without hooked rows.
                if !parts.isEmpty { plain.append(target) }
                continue
            }
            if parts.isEmpty { plain = Array(unsent.prefix(place)) }
            if let index = parts.firstIndex(where: { $0.kind == kind }) {
                parts[index].targets.append(target)
            } else {
                parts.append(HookedRows(kind: kind, targets: [target], conditionsHoldUntil: checkHoldsUntil))
            }
        }
        guard !parts.isEmpty else { return false }
        keepUnsent(plain)
        hooked.append(contentsOf: parts)
        return true
    }

    /// The notifications of targets in ascending order, each once.
    func notifications(of targets: ArraySlice<Int32>) -> [Identifier] {
        var last = -1
        var notifications: [Identifier] = []
        for target in targets {
            let index = claimed.index(ofTarget: Int(target))
            if index != last { notifications.append(claimed.dispatches[index].notification) }
            last = index
        }
        return notifications
    }

    /// A call took the rows of a part.
    mutating func hookAsked(_ part: Int, call: Int) {
        hooked[part].stage = .asking(call: call)
    }

    /// The answer to a part has grown too old: it waits for the next one.
    mutating func hookAnswerLapsed(_ part: Int) {
        hooked[part].stage = .waiting
    }

    /// The rows of a part that were let through may be sent until then.
    mutating func clear(_ part: Int, _ standing: [Int32], until: ContinuousClock.Instant) {
        hooked[part].targets = standing[...]
        hooked[part].stage = .clear(until: until)
    }

    /// Takes at most `limit` targets of a part that the hooks have let through, for sending.
    mutating func take(_ limit: Int, ofPart part: Int) -> ArraySlice<Int32> {
        if case .clear(let until) = hooked[part].stage { takenHoldUntil = until }
        let taken = hooked[part].targets.prefix(limit)
        hooked[part].targets = hooked[part].targets.dropFirst(limit)
        if hooked[part].targets.isEmpty { hooked.remove(at: part) }
        return taken
    }
}
