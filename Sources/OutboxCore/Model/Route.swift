/// A number that the database gave to a route; stable for the life of the schema.
package typealias RouteNumber = Int16

/// What a piece of work waits for: one provider, environment and app.
package struct Route: Hashable, Sendable {
    /// The number that queue, leases and ledger name it by.
    package let number: RouteNumber
    /// `apns`, `fcm`, …, or `none` for notifications whose principal has no device yet.
    package let provider: String
    /// `production` or `sandbox` where the provider has environments (APNs), else empty.
    package let environment: String
    /// The app's bundle id or package name.
    package let app: String

    /// A route as the registry has it.
    package init(number: RouteNumber, provider: String, environment: String, app: String) {
        self.number = number
        self.provider = provider
        self.environment = environment
        self.app = app
    }
}

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

/// How often a row's workers have died on it, as far as the claim cares: rows that survived a crash are claimed in
/// small batches, suspects alone, so that a poison row never takes its neighbours along.
package enum CrashClass: Int16, CaseIterable, Sendable {
    /// No crash: batches of any size.
    case clean = 0
    /// One crash: batches of at most 32.
    case once = 1
    /// Two or more: alone.
    case suspect = 2

    /// The most rows that one claim of this class takes.
    package var batchLimit: Int {
        switch self {
        case .clean: .max
        case .once: 32
        case .suspect: 1
        }
    }
}
