import CLinux
import Glibc
import Synchronization

/// One thread that waits for descriptors, timers and jobs, and runs everything that touches a socket.
///
/// It is a `SerialExecutor` (an actor pins itself to it by `unownedExecutor`) and a `TaskExecutor` (a task started with
/// `Task(executorPreference: loop)` comes back to it after each suspension). With both, an `await` between two actors
/// of one loop is a call; without the preference each resume would visit the global pool first.
///
/// Calls marked *loop only* must come from the loop's own thread; `precondition`s hold callers to it. What they store
/// is confined to that thread, which is why this class, alone in the package, is `@unchecked Sendable`: `remote` is
/// guarded by its lock, everything else belongs to the thread that runs the loop.
package final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    /// Jobs handed over by other threads.
    private let remote = Guarded<[UnownedJob]>([])
    private let wakePending = Atomic<Bool>(false)
    private let stopping = Atomic<Bool>(false)
    private let threadIdentity = Atomic<UInt>(0)
    private let wakeDescriptor: Int32
    let threadPool: ThreadPool

    private var local: [UnownedJob] = []
    private var spare: [UnownedJob] = []
    private var poller: Poller
    private var timers = TimerQueue()
    private var endOfTurn: [any EndOfTurnHandler] = []

    /// Makes a loop that nobody runs yet. `workers` threads serve `offload` (signing, DNS, files).
    package init(workers: Int = 2) {
        wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(wakeDescriptor >= 0, "eventfd failed: errno \(errno)")
        poller = Poller(wakeDescriptor: wakeDescriptor)
        threadPool = ThreadPool(threads: workers)
    }

    deinit {
        poller.close()
        close(wakeDescriptor)
    }

    /// A loop on a thread of its own; `stop()` ends it.
    package static func startThread(name: String, workers: Int = 2) -> EventLoop {
        let loop = EventLoop(workers: workers)
        spawnThread(name: name) { loop.run() }
        return loop
    }

    /// Turns the loop on the calling thread until `stop()`. Jobs that wait at that moment are not run any more.
    package func run() {
        let claimed = threadIdentity.compareExchange(
            expected: 0, desired: currentThread, ordering: .sequentiallyConsistent)
        precondition(claimed.exchanged, "an event loop runs on one thread, once")
        while !stopping.load(ordering: .acquiring) {
            turn()
        }
        // The system may give this thread's number to another one, which must not pass for the loop.
        threadIdentity.store(Self.ended, ordering: .sequentiallyConsistent)
        threadPool.stop()
    }

    /// No thread has this number, nor 0.
    private static let ended = UInt.max

    /// Ends `run()` after the turn in progress. Callable from any thread.
    package func stop() {
        stopping.store(true, ordering: .releasing)
        wake()
    }

    /// Whether the caller is on the loop's thread.
    package var isCurrent: Bool {
        threadIdentity.load(ordering: .relaxed) == currentThread
    }

    // MARK: Descriptors, timers, end of turn (loop only)

    /// Watches `descriptor`, or changes what a watched one is waited for. Loop only.
    package func watch(_ descriptor: Int32, for interest: Interest, handler: any ReadinessHandler) {
        precondition(isCurrent, "watch is called on the loop's thread only")
        poller.watch(descriptor, for: interest, handler: handler)
    }

    /// Stops watching; call it before the descriptor is closed. Loop only.
    package func unwatch(_ descriptor: Int32) {
        precondition(isCurrent, "unwatch is called on the loop's thread only")
        poller.unwatch(descriptor)
    }

    /// Calls `fire` once, on the loop, not before `due` (and at most about a millisecond after it). Loop only.
    @discardableResult
    package func arm(at due: ContinuousClock.Instant, _ fire: @escaping () -> Void) -> TimerID {
        precondition(isCurrent, "timers are armed on the loop's thread only")
        return timers.arm(due: due, fire: fire)
    }

    /// Cancels a timer; harmless if it has fired. Loop only.
    package func cancel(_ timer: TimerID) {
        precondition(isCurrent, "timers are cancelled on the loop's thread only")
        timers.cancel(timer)
    }

    /// Calls `handler` once when everything that is ready now has run: the place to write what a turn gathered.
    /// Loop only.
    package func atEndOfTurn(_ handler: any EndOfTurnHandler) {
        precondition(isCurrent, "end-of-turn work is queued on the loop's thread only")
        endOfTurn.append(handler)
    }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isCurrent {
            local.append(job)
        } else {
            remote.withLock { $0.append(job) }
            wake()
        }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        UnownedTaskExecutor(ordinary: self)
    }

    package func checkIsolated() {
        precondition(isCurrent, "expected to run on the event loop's thread")
    }

    package func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }

    // MARK: A turn

    /// Rounds of jobs before descriptors are looked at again, so that jobs which enqueue jobs cannot starve sockets.
    private static let roundsPerTurn = 16

    private func turn() {
        let ready = poller.wait(milliseconds: waitMilliseconds())
        for index in 0..<ready {
            if let (handler, interest) = poller.event(index) {
                handler.descriptorReady(interest)
            } else if poller.isWakeUp(index) {
                drainWakeUp()
            }
        }
        // One instant for all: a timer that is armed here for now waits for the next turn.
        let now = ContinuousClock.now
        while let fire = timers.popDue(at: now) { fire() }
        var round = 0
        repeat {
            while round < Self.roundsPerTurn && !local.isEmpty {
                runJobs()
                round += 1
            }
            runEndOfTurn()
        } while round < Self.roundsPerTurn && !local.isEmpty
    }

    private func waitMilliseconds() -> Int32 {
        if !local.isEmpty || !endOfTurn.isEmpty || stopping.load(ordering: .acquiring) { return 0 }
        guard let earliest = timers.earliest() else { return -1 }
        let (seconds, attoseconds) = ContinuousClock.now.duration(to: earliest).components
        if seconds < 0 || attoseconds < 0 { return 0 }
        // Rounded up: a wait that ends a little early would turn the loop once more for nothing.
        let milliseconds = seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        return Int32(min(milliseconds, 60_000))
    }

    private func drainWakeUp() {
        var count: UInt64 = 0
        _ = read(wakeDescriptor, &count, 8)
        // Cleared before the inbox is looked at: what is appended afterwards wakes us again.
        wakePending.store(false, ordering: .sequentiallyConsistent)
        remote.withLock { jobs in
            local.append(contentsOf: jobs)
            jobs.removeAll(keepingCapacity: true)
        }
    }

    private func runJobs() {
        guard !local.isEmpty else { return }
        swap(&local, &spare)
        let serial = asUnownedSerialExecutor()
        let task = asUnownedTaskExecutor()
        for job in spare { job.runSynchronously(isolatedTo: serial, taskExecutor: task) }
        spare.removeAll(keepingCapacity: true)
    }

    private func runEndOfTurn() {
        guard !endOfTurn.isEmpty else { return }
        let handlers = endOfTurn
        endOfTurn.removeAll(keepingCapacity: true)
        for handler in handlers { handler.turnEnded() }
    }

    private func wake() {
        guard !wakePending.exchange(true, ordering: .sequentiallyConsistent) else { return }
        var one: UInt64 = 1
        _ = write(wakeDescriptor, &one, 8)
    }
}

/// Gets called when a turn of the loop ends; see `EventLoop.atEndOfTurn`.
package protocol EndOfTurnHandler: AnyObject {
    /// Everything that was ready in this turn has run. Queue again for the next turn if more is to come.
    func turnEnded()
}
