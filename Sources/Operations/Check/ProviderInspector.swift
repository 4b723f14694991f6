package import EventLoop
package import OutboxCore

/// What `postbell check` asks about providers. It is answered where lanes are made, so that the doctor looks at the
/// very values that a worker would use.
package protocol ProviderInspector: Sendable {
    /// Looks at the credentials of `configuration`: their files and their other parts. Connects to nothing.
    func credentials(of configuration: Configuration) -> [CheckItem]

    /// Connects to each endpoint that the credentials lead to, as far as HTTP/2's settings. No request is sent.
    func endpoints(of configuration: Configuration, on loop: EventLoop) async -> [CheckItem]

    /// Whether a credential of `configuration` covers `route`.
    func covers(_ route: Route, in configuration: Configuration) -> Bool
}
