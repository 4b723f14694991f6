/// A notification that has been due for long and is still pending, as people are told of it: no value of its row.
package struct LongPending: Equatable, Sendable {
    /// The notification.
    package let notification: Identifier
    /// What it waits for.
    package let route: RouteNumber
    /// Its kind.
    package let kind: String
    /// When it was enqueued.
    package let createdAt: Timestamp
    /// How long it has been due; of one on lease, how long ago it was claimed.
    package let age: Duration
    /// The worker that has it on lease; nil while it waits in the queue.
    package let claimant: String?

    /// One notification of a sample.
    package init(
        notification: Identifier, route: RouteNumber, kind: String, createdAt: Timestamp, age: Duration,
        claimant: String?
    ) {
        self.notification = notification
        self.route = route
        self.kind = kind
        self.createdAt = createdAt
        self.age = age
        self.claimant = claimant
    }
}
