/// One notification on its way to a provider: what all its targets share.
package struct OutgoingPush: Sendable {
    /// The claimed row.
    package let dispatch: ClaimedDispatch
    /// The row's kind.
    package let kind: Kind
    /// The route: environment and app.
    package let route: Route
    /// The database's time, for expirations.
    package let now: Timestamp

    /// A notification to be sent.
    package init(dispatch: ClaimedDispatch, kind: Kind, route: Route, now: Timestamp) {
        self.dispatch = dispatch
        self.kind = kind
        self.route = route
        self.now = now
    }
}
