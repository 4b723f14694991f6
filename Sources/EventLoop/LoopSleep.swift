extension EventLoop {
    /// Suspends the caller until `instant`, by a timer of the loop. Throws `CancellationError` when the task is
    /// cancelled, at once if it has been already.
    package func sleep(until instant: ContinuousClock.Instant) async throws {
        try await Sleeper(loop: self).sleep(until: instant)
    }

    /// Suspends the caller for `duration`; see `sleep(until:)`.
    package func sleep(for duration: Duration) async throws {
        try await sleep(until: .now + duration)
    }
}

/// One sleep in progress.
private actor Sleeper {
    private let loop: EventLoop
    private var timer: TimerID?
    private var continuation: UnsafeContinuation<Void, any Error>?
    private var isCancelled = false

    init(loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    func sleep(until instant: ContinuousClock.Instant) async throws {
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { begin(until: instant, $0) }
        } onCancel: {
            // Cancellation may come from any thread; the sleeper lives on the loop.
            Task(executorPreference: loop) { await self.cancel() }
        }
    }

    private func begin(until instant: ContinuousClock.Instant, _ continuation: UnsafeContinuation<Void, any Error>) {
        guard !isCancelled && !Task.isCancelled else { return continuation.resume(throwing: CancellationError()) }
        self.continuation = continuation
        timer = loop.arm(at: instant) { [weak self] in
            self?.assumeIsolated { $0.wake() }
        }
    }

    private func wake() {
        continuation?.resume()
        continuation = nil
    }

    private func cancel() {
        isCancelled = true
        if let timer { loop.cancel(timer) }
        continuation?.resume(throwing: CancellationError())
        continuation = nil
    }
}
