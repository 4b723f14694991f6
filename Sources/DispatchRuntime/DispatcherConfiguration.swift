package import HTTP2
package import OutboxCore

/// One lane to be run: what it serves, its provider and its transport.
package struct LaneConfiguration: Sendable {
    /// Name and pause.
    package let description: LaneDescription
    /// Whether a route's rows are this lane's: the credential covers its provider, environment and app.
    package let serves: @Sendable (Route) -> Bool
    /// Where and how requests are sent.
    package let transport: HTTP2ClientConfiguration
    /// Makes what the requests look like and what the answers mean.
    package let provider: ProviderFactory

    /// Makes a lane's provider. It calls its argument, on the dispatcher's loop and not from within a call of its own,
    /// when access comes or goes by itself: a token came over the wire, or cannot be had.
    package typealias ProviderFactory =
        @Sendable (_ accessChanged: @escaping @Sendable (ProviderAccess) -> Void)
        -> any PushProvider<HTTPRequestBatch, HTTPResponse>

    /// A lane of a configuration.
    package init(
        description: LaneDescription, serves: @escaping @Sendable (Route) -> Bool,
        transport: HTTP2ClientConfiguration,
        provider: @escaping ProviderFactory
    ) {
        self.description = description
        self.serves = serves
        self.transport = transport
        self.provider = provider
    }
}

/// How the dispatcher runs, beside the bounds of the decision machine.
package struct DispatcherSettings: Sendable {
    /// The decision machine's bounds and times.
    package var dispatch = DispatchSettings()
    /// Longest time without a claim while idle.
    package var poll: Duration = .seconds(1)
    /// How long a drain may take before requests are aborted.
    package var stopTimeout: Duration = .seconds(20)
    /// Lapsed leases before a row is set aside.
    package var maxCrashes = 5
    /// Failures in a row, in a healthy lane, that clear a device's token; 0 for never.
    package var maxFailures = 0
    /// Age from due of a pending notification that is warned about, and the pause between warnings of it.
    package var stuckAfter: Duration = .seconds(300)
    /// How often what was kept long enough is removed.
    package var retentionInterval: Duration = .seconds(60)
    /// Whether awake keys are held, so that producers need not notify. Off behind a transaction-pooling proxy.
    package var holdsAwakeKeys = true
    /// Version of the worker, for the registry.
    package var version = "unknown"

    /// The defaults.
    package init() {}
}
