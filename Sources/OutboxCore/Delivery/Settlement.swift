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

    /// Whether there is nothing to write.
    package var isEmpty: Bool { leaving.isEmpty && ledger.isEmpty }
}
