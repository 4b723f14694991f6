extension EventLoop {
    /// Suspends the caller until `instant`, and comes back on the loop. Throws `CancellationError` when the task is
    /// cancelled.
    ///
    /// The caller must run on the loop (an actor pinned to it, or a task that prefers it).
    package func sleep(until instant: ContinuousClock.Instant) async throws {
        precondition(isCurrent, "sleep is called on the loop only")
        let sleeper = Sleeper(loop: self)
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { sleeper.begin(until: instant, continuation: $0) }
        } onCancel: {
            // Cancellation may come from any thread; the sleeper lives on the loop.
            Task(executorPreference: self) { await sleeper.cancel() }
        }
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
    private var cancelled = false

    init(loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    nonisolated func begin(until instant: ContinuousClock.Instant, continuation: UnsafeContinuation<Void, any Error>) {
        assumeIsolated { sleeper in
            guard !sleeper.cancelled else { return continuation.resume(throwing: CancellationError()) }
            sleeper.continuation = continuation
            sleeper.timer = sleeper.loop.arm(at: instant) { [weak sleeper] in
                sleeper?.assumeIsolated { $0.wake() }
            }
        }
    }

    private func wake() {
        continuation?.resume()
        continuation = nil
    }

    func cancel() {
        cancelled = true
        if let timer { loop.cancel(timer) }
        continuation?.resume(throwing: CancellationError())
        continuation = nil
    }
}
