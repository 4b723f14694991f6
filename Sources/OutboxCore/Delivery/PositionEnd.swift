/// How a notification (or one route of it) ended, other than by final ledger rows alone.
package enum SettlementStatus: Int16, CaseIterable, Sendable {
    case dispatched = 0
    case superseded = 1
    case cancelled = 2
    case expired = 3
    case failed = 4

    /// The name in views and logs.
    package var name: String { "\(self)" }
}

/// A position that ends by a settlement of its own.
package struct PositionEnd: Equatable, Sendable {
    /// Position in the lease, from 1.
    package let position: Int16
    /// How it ended.
    package let status: SettlementStatus
    /// Why.
    package let reason: SettlementReason
    /// Whether the whole notification ends by it, not this route alone (superseded, cancelled, erased).
    package let wholeNotification: Bool

    /// An end of one position.
    package init(position: Int16, status: SettlementStatus, reason: SettlementReason, wholeNotification: Bool) {
        self.position = position
        self.status = status
        self.reason = reason
        self.wholeNotification = wholeNotification
    }
}
