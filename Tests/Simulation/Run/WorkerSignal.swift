/// What one task of a worker waits for and others ring, as `LoopSignal` in the product: a ring while nobody waits is
/// kept for the next wait.
final class WorkerSignal {
    private unowned let worker: SimulatedWorker
    private var isRaised = false
    private var waiter: (() -> Void)?
    private var turn = 0

    init(_ worker: SimulatedWorker) {
        self.worker = worker
    }

    func ring() {
        guard let waiter else {
            isRaised = true
            return
        }
        self.waiter = nil
        turn += 1
        worker.soon(waiter)
    }

    /// Goes on with a ring, at `deadline` at the latest.
    func wait(until deadline: ContinuousClock.Instant, _ then: @escaping () -> Void) {
        if isRaised {
            isRaised = false
            return worker.soon(then)
        }
        precondition(waiter == nil, "one task waits for a signal")
        waiter = then
        let waited = turn
        worker.at(deadline) { [unowned self] in
            guard turn == waited, let waiter else { return }
            self.waiter = nil
            turn += 1
            waiter()
        }
    }
}
