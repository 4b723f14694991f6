import Synchronization

/// Tells a task beside that it is time to end.
final class Flag: Sendable {
    private let value = Atomic(false)

    /// Whether it was raised, or the task that asks was cancelled.
    var isRaised: Bool { value.load(ordering: .acquiring) || Task.isCancelled }

    func raise() {
        value.store(true, ordering: .releasing)
    }
}
