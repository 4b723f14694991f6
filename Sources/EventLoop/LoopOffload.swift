extension EventLoop {
    /// Runs blocking `work` on a small thread pool and resumes the caller with what it returned or threw.
    ///
    /// It returns when `work` does, and nothing can call it off: work needs a bound of its own, or a caller that goes
    /// on without it.
    package func offload<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await offload(to: threadPool, work)
    }

    /// The same on a pool of the caller's, for work that may hang for long and must not hold up what others offload.
    package func offload<Value: Sendable>(
        to pool: ThreadPool, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await Errand(loop: self).run(on: pool, work)
    }
}

/// One piece of offloaded work, awaited on the loop.
///
/// It is also resumed there, never by the pool's thread: so it always waits already when its outcome comes, which keeps
/// the runtime off a path whose order Thread Sanitizer cannot see.
private actor Errand {
    private let loop: EventLoop

    init(loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    func run<Value: Sendable>(
        on pool: ThreadPool, _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withUnsafeThrowingContinuation { continuation in
            pool.submit { [loop] in
                let outcome = Result(catching: work)
                Task(executorPreference: loop) { continuation.resume(with: outcome) }
            }
        }
    }
}
