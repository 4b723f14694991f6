/// What a settle found.
package struct SettleReport: Equatable, Sendable {
    /// Whether the lease was still ours.
    package let owned: Bool
    /// Ledger rows that were new.
    package let ledgerRows: Int
    /// Rows that went back to the queue.
    package let returned: Int

    /// A settle's answer.
    package init(owned: Bool, ledgerRows: Int, returned: Int) {
        self.owned = owned
        self.ledgerRows = ledgerRows
        self.returned = returned
    }

    /// The lease is gone and these results are news: they stand on the ledger as `late` and changed nothing else.
    /// A lease that is gone without news is our own flush, repeated.
    package var isFenced: Bool { !owned && ledgerRows > 0 }
}
