import EventLoop

/// Something that one task of an actor waits for and others ring: a condition with a deadline, for one waiter.
///
/// A ring while nobody waits is kept for the next wait. Confined to the actor that owns it, on the loop.
final class LoopSignal {
    private let loop: EventLoop
    private var isRaised = false
    private var waiter: UnsafeContinuation<Void, Never>?
    private var timer: TimerID?

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Wakes the waiter, or the next one.
    func ring() {
        guard let waiter else {
            isRaised = true
            return
        }
        self.waiter = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        waiter.resume()
    }

    /// Waits for a ring, until `deadline` at the latest.
    func wait(until deadline: ContinuousClock.Instant) async {
        await withUnsafeContinuation { continuation in
            // In here, because the operation may begin by a hop, during which it may be rung.
            if isRaised {
                isRaised = false
                return continuation.resume()
            }
            precondition(waiter == nil, "one task waits for a signal")
            waiter = continuation
            timer = loop.arm(at: deadline) { [weak self] in
                self?.timer = nil
                self?.ringAtDeadline()
            }
        }
    }

    private func ringAtDeadline() {
        let waiter = waiter
        self.waiter = nil
        waiter?.resume()
    }
}
