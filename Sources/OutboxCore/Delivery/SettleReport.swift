/// What a settle found.
package struct SettleReport: Equatable, Sendable {
    /// Whether the lease was still ours.
    package let owned: Bool
    /// Ledger rows that were new.
    package let ledgerRows: Int
    /// Rows that went back to the queue.
    package let returned: Int
    /// Positions of which something is a value that the database does not take: they stay on the lease, and whoever
    /// recovers it tries again.
    package let refused: Set<Int16>
    /// What the database said of the flush as a whole; nil where nothing was refused for good.
    package let refusal: StoreError?

    /// A settle's answer.
    package init(
        owned: Bool, ledgerRows: Int, returned: Int, refused: Set<Int16> = [], refusal: StoreError? = nil
    ) {
        self.owned = owned
        self.ledgerRows = ledgerRows
        self.returned = returned
        self.refused = refused
        self.refusal = refusal
    }

    /// The lease is gone and these results are news: they stand on the ledger as `late` and changed nothing else.
    /// A lease that is gone without news is our own flush, repeated.
    package var isFenced: Bool { !owned && ledgerRows > 0 }
}
