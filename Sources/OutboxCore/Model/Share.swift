/// What fairness divides: the rows of one urgency and tenant.
package struct Share: Hashable, Comparable, Sendable {
    /// Order in the queue, lowest first: 0 urgent, 1 bulk.
    package let urgency: Int16
    /// The tenant's small number.
    package let tenant: Int32

    /// A share by its parts.
    package init(urgency: Int16, tenant: Int32) {
        self.urgency = urgency
        self.tenant = tenant
    }

    package static func < (left: Share, right: Share) -> Bool {
        left.urgency == right.urgency ? left.tenant < right.tenant : left.urgency < right.urgency
    }
}
