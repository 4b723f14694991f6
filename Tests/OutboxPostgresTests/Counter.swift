import Synchronization

/// Counts what happens on the loop.
final class Counter: Sendable {
    private let value = Mutex(0)

    func add() {
        value.withLock { $0 += 1 }
    }

    /// What was counted since the last time.
    func take() -> Int {
        value.withLock { count in
            defer { count = 0 }
            return count
        }
    }
}
