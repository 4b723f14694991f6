/// One flush of one lease: may be repeated at any time and by any session with the same content.
package struct Settlement: Equatable, Sendable {
    /// The lease.
    package let batch: Identifier
    /// Its route.
    package let route: RouteNumber
    /// How many positions the lease has.
    package let positions: Int
    /// The positions that leave with this flush, ascending, from 1.
    package var leaving: [Int16] = []
    /// Ledger rows, ascending by identifier.
    package var ledger: [LedgerRow] = []
    /// Positions of `leaving` that go back to the queue.
    package var returns: [QueueReturn] = []
    /// Positions of `leaving` that end by a settlement.
    package var ends: [PositionEnd] = []

    /// An empty flush of a lease.
    package init(batch: Identifier, route: RouteNumber, positions: Int) {
        self.batch = batch
        self.route = route
        self.positions = positions
    }

    /// The same flush with these ledger rows alone, and of the positions that leave only these.
    package func part(ledger: ArraySlice<LedgerRow>, leaving: ArraySlice<Int16>) -> Settlement {
        var part = Settlement(batch: batch, route: route, positions: positions)
        let positions = Set(leaving)
        part.leaving = Array(leaving)
        part.ledger = Array(ledger)
        part.returns = returns.filter { positions.contains($0.position) }
        part.ends = ends.filter { positions.contains($0.position) }
        return part
    }

    /// How many results it holds.
    var size: Int { max(ledger.count, leaving.count) }

    /// Whether there is nothing to write.
    package var isEmpty: Bool { leaving.isEmpty && ledger.isEmpty }
}
