import EventLoop
import Synchronization

/// How often the worker was told to stop, and waits that end with it. Confined to the loop.
final class StopSignal {
    private let loop: EventLoop
    private var waiting: [() -> Void] = []
    /// Times it was told.
    private(set) var count = 0

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// It was told once more.
    func ring() {
        count += 1
        wake()
    }

    /// Waits for `duration`, or until it is told.
    func pause(for duration: Duration) async {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            // In here, because the operation may begin by a hop, during which it may be told.
            guard count == 0 else { return continuation.resume() }
            waiting.append { continuation.resume() }
            loop.arm(at: .now + duration) { [weak self] in self?.wake() }
        }
    }

    /// What `work` comes to, or nil as soon as it is told: nobody waits for the work then.
    func value<Value: Sendable>(of work: @escaping @Sendable () async -> Value) async -> Value? {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Value?, Never>) in
            guard count == 0 else { return continuation.resume(returning: nil) }
            let first = FirstAnswer(continuation)
            waiting.append { first.give(nil) }
            Task(executorPreference: loop) { first.give(await work()) }
        }
    }

    private func wake() {
        let awake = waiting
        waiting = []
        for resume in awake { resume() }
    }
}

/// Resumes a continuation with the first of several answers.
private final class FirstAnswer<Value: Sendable>: Sendable {
    private let waiter: Mutex<UnsafeContinuation<Value?, Never>?>

    init(_ continuation: UnsafeContinuation<Value?, Never>) {
        waiter = Mutex(continuation)
    }

    func give(_ value: Value?) {
        let continuation = waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }
        continuation?.resume(returning: value)
    }
}
