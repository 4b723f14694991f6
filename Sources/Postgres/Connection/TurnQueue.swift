import EventLoop

/// Lets the callers of one connection through one at a time, in order of arrival. Confined to the loop.
final class TurnQueue {
    private final class Waiter {
        let turn = Latch()
        var gaveUp = false
    }

    private let loop: EventLoop
    private let limit: Int
    private var isTaken = false
    private var waiting: [Waiter] = []
    private var next = 0

    init(on loop: EventLoop, limit: Int) {
        self.loop = loop
        self.limit = limit
    }

    /// Returns when it is the caller's turn, who then must call `leave()`. Throws at the deadline and when too many
    /// wait.
    func enter(_ operation: String, until deadline: ContinuousClock.Instant) async throws(PostgresError) {
        guard isTaken else {
            isTaken = true
            return
        }
        guard waiting.count - next < limit else {
            throw PostgresError(
                .overloaded, operation: operation, message: "\(limit) statements already wait for the connection")
        }
        let waiter = Waiter()
        let timer = loop.arm(at: deadline) {
            waiter.gaveUp = true
            waiter.turn.open()
        }
        waiting.append(waiter)
        await waiter.turn.wait()
        loop.cancel(timer)
        if waiter.gaveUp {
            throw PostgresError(.deadline, operation: operation, message: "the connection was busy until the deadline")
        }
    }

    /// Passes the turn to the next who still waits.
    func leave() {
        while next < waiting.count {
            let waiter = waiting[next]
            next += 1
            guard !waiter.gaveUp else { continue }
            waiter.turn.open()
            return
        }
        waiting.removeAll(keepingCapacity: true)
        next = 0
        isTaken = false
    }
}
