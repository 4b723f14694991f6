import EventLoop

/// How often the worker was told to stop, and a wait that ends with it. Confined to the loop.
final class StopSignal {
    private let loop: EventLoop
    private var waiters: [UnsafeContinuation<Void, Never>] = []
    /// Times it was told.
    private(set) var count = 0

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// It was told once more.
    func ring() {
        count += 1
        let waiting = waiters
        waiters = []
        for waiter in waiting { waiter.resume() }
    }

    /// Waits for `duration`, or until it is told.
    func pause(for duration: Duration) async {
        guard count == 0 else { return }
        await withUnsafeContinuation { continuation in
            waiters.append(continuation)
            loop.arm(at: .now + duration) { [weak self] in self?.wake() }
        }
    }

    private func wake() {
        let waiting = waiters
        waiters = []
        for waiter in waiting { waiter.resume() }
    }
}
