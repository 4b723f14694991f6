import CLinux
import Glibc

/// The calling thread, as a number that no other living thread has.
var currentThread: UInt {
    UInt(pthread_self())
}

/// Starts a detached thread named `name` (cut to 15 bytes by the kernel) with a stack of 8 MiB.
func spawnThread(name: String, _ body: @escaping @Sendable () -> Void) {
    final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setstacksize(&attributes, 8 << 20)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    var thread = pthread_t()
    let context = Unmanaged.passRetained(
        Body {
            clinux_name_thread(name)
            body()
        }
    ).toOpaque()
    let result = pthread_create(
        &thread, &attributes,
        { context in
            guard let context else { return nil }
            Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
            return nil
        }, context)
    precondition(result == 0, "pthread_create failed: \(result)")
    pthread_attr_destroy(&attributes)
}

/// A few threads for work that blocks: DNS, files, signing. Started on first use, idle threads wait.
///
/// The loop has one for `offload`; work that may hang for long gets a pool of its own, so that it delays nothing else.
package final class ThreadPool: Sendable {
    private struct State {
        var work: [@Sendable () -> Void] = []
        var running = 0
        var idle = 0
        var stopped = false
    }

    private let limit: Int
    private let state = Guarded(State())
    private let available = Semaphore()

    /// A pool of at most `limit` threads; none is started yet.
    package init(threads limit: Int) {
        precondition(limit > 0, "a thread pool needs a thread")
        self.limit = limit
    }

    /// Runs `work` as soon as a thread is free, also after `stop()`.
    package func submit(_ work: @escaping @Sendable () -> Void) {
        let startsThread = state.withLock { state in
            state.work.append(work)
            guard state.idle < state.work.count, state.running < limit else { return false }
            state.running += 1
            return true
        }
        if startsThread { spawnThread(name: "postbell-pool") { self.serve() } }
        available.signal()
    }

    /// How much work waits for a thread.
    package var backlog: Int { state.withLock { $0.work.count } }

    /// Lets the threads end once nothing is left to do.
    package func stop() {
        let running = state.withLock { state in
            state.stopped = true
            return state.running
        }
        for _ in 0..<running { available.signal() }
    }

    private func serve() {
        while true {
            let ends = state.withLock { state in
                guard state.work.isEmpty && state.stopped else {
                    state.idle += 1
                    return false
                }
                state.running -= 1
                return true
            }
            if ends { return }
            available.wait()
            let next = state.withLock { state -> (@Sendable () -> Void)? in
                state.idle -= 1
                return state.work.isEmpty ? nil : state.work.removeFirst()
            }
            next?()
        }
    }
}

/// A counting semaphore, kept by the kernel: an eventfd in semaphore mode, so that it is a plain number to Swift.
final class Semaphore: Sendable {
    private let descriptor: Int32

    init() {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))
        precondition(descriptor >= 0, "eventfd failed: errno \(errno)")
    }

    deinit {
        close(descriptor)
    }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// Waits until the count is above zero, through interruptions by signals.
    func wait() {
        var one: UInt64 = 0
        while read(descriptor, &one, 8) < 0 && errno == EINTR {}
    }
}
