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
