/// Lapsed leases that were recovered.
package struct RecoveryReport: Equatable, Sendable {
    /// Leases deleted.
    package let leases: Int
    /// Rows that went back to the queue.
    package let rows: Int
    /// `unknown` rows written for what may have been sent.
    package let unknowns: Int
    /// Rows set aside as `failed` after too many crashes.
    package let setAside: Int

    /// What one recovery did.
    package init(leases: Int, rows: Int, unknowns: Int, setAside: Int) {
        self.leases = leases
        self.rows = rows
        self.unknowns = unknowns
        self.setAside = setAside
    }
}
