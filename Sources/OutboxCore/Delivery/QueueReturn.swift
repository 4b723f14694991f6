/// A position that goes back to the queue: a retry, a release, or the next page of its targets.
package struct QueueReturn: Equatable, Sendable {
    /// Position in the lease, from 1.
    package let position: Int16
    /// Due so long after the settle.
    package let delay: Duration
    /// Attempts of the dispatch that count; one less than claimed when none was spent.
    package let attempt: Int16
    /// Where among its devices the next claim goes on.
    package let cursor: PageCursor
    /// Whether the row has proven harmless, so that its crashes are forgotten.
    package let clearsCrashes: Bool

    /// A position that goes back.
    package init(position: Int16, delay: Duration, attempt: Int16, cursor: PageCursor, clearsCrashes: Bool) {
        self.position = position
        self.delay = delay
        self.attempt = attempt
        self.cursor = cursor
        self.clearsCrashes = clearsCrashes
    }
}
