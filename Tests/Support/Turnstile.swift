/// Lets at most so many in at once; the others wait for their turn.
package actor Turnstile {
    private var free: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Lets `capacity` in before anybody has left.
    package init(_ capacity: Int) {
        free = capacity
    }

    /// Returns when it is the caller's turn.
    package func enter() async {
        await withCheckedContinuation { continuation in
            guard free > 0 else { return waiting.append(continuation) }
            free -= 1
            continuation.resume()
        }
    }

    /// Makes room for one more.
    package func leave() {
        if waiting.isEmpty {
            free += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}
