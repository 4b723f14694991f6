import EventLoop
import Testing

/// The loop as an executor: jobs, turns, timers, its thread pool.
@Suite(.timeLimit(.minutes(1)))
struct EventLoopTests {
    @Test
    func `Jobs of an actor on the loop run on its thread, in the order in which they were handed over`() async {
        await withLoop { actor in
            let record = Record<Int>()
            let isOnLoop = await actor.isCurrent
            #expect(isOnLoop)
            #expect(!actor.loop.isCurrent)
            let last: Task<Void, Never> = await actor.run { loop in
                var task = Task<Void, Never>(executorPreference: loop) {}
                for number in 0..<100 {
                    task = Task(executorPreference: loop) { record.append(number) }
                }
                return task
            }
            await last.value
            #expect(record.all == Array(0..<100))
        }
    }

    @Test
    func `Jobs from many threads all arrive`() async {
        await withLoop { actor in
            let count = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<1000 { group.addTask { await actor.isCurrent } }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            #expect(count == 1000)
        }
    }

    @Test
    func `A task that prefers the loop comes back to it after each suspension`() async {
        await withLoop { actor in
            let places = await Task(executorPreference: actor.loop) {
                var places = [actor.loop.isCurrent]
                try? await actor.loop.offload {}
                places.append(actor.loop.isCurrent)
                await Task.yield()
                places.append(actor.loop.isCurrent)
                return places
            }.value
            #expect(places == [true, true, true])
        }
    }

    @Test
    func `A callback of the loop may assume the isolation of its actors`() async {
        await withLoop { actor in
            let isIsolated: Bool = await actor.wait { loop, continuation in
                loop.arm(at: .now) {
                    actor.assumeIsolated { _ in continuation.resume(returning: true) }
                }
            }
            #expect(isIsolated)
        }
    }

    @Test
    func `Timers fire in order of their instants, then of their arming, and not before them`() async {
        await withLoop { actor in
            let record = Record<Int>()
            let start = ContinuousClock.now
            let end: ContinuousClock.Instant = await actor.wait { loop, continuation in
                loop.arm(at: start + .milliseconds(20)) { continuation.resume(returning: .now) }
                loop.arm(at: start + .milliseconds(10)) { record.append(2) }
                loop.arm(at: start + .milliseconds(5)) { record.append(1) }
                loop.arm(at: start + .milliseconds(10)) { record.append(3) }
                loop.arm(at: start - .seconds(1)) { record.append(0) }
            }
            #expect(record.all == [0, 1, 2, 3])
            #expect(end >= start + .milliseconds(20))
        }
    }

    @Test
    func `A cancelled timer does not fire, not even from a timer due at the same instant`() async {
        await withLoop { actor in
            let record = Record<String>()
            await actor.wait { (loop, continuation: CheckedContinuation<Void, Never>) in
                let due = ContinuousClock.now
                var second: TimerID?
                loop.arm(at: due) {
                    record.append("first")
                    if let second { loop.cancel(second) }
                }
                second = loop.arm(at: due) { record.append("second") }
                let cancelled = loop.arm(at: due) { record.append("third") }
                loop.cancel(cancelled)
                loop.arm(at: due) { continuation.resume() }
            }
            #expect(record.all == ["first"])
        }
    }

    @Test
    func `A timer that arms itself for now does not keep the loop from its jobs`() async {
        await withLoop { actor in
            let stop = Record<Bool>()
            await actor.run { loop in
                @Sendable func again() {
                    if stop.all.isEmpty { loop.arm(at: .now - .seconds(1), again) }
                }
                again()
            }
            let isAlive = await actor.isCurrent
            #expect(isAlive)
            stop.append(true)
        }
    }

    @Test
    func `A sleep ends when its task is cancelled, before or while it sleeps`() async {
        await withLoop { actor in
            let asleep = Task { try await actor.sleep(for: .seconds(3600)) }
            _ = await actor.isCurrent
            asleep.cancel()
            await #expect(throws: CancellationError.self) { try await asleep.value }
            let cancelled = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                try await actor.sleep(for: .seconds(3600))
            }
            await #expect(throws: CancellationError.self) { try await cancelled.value }
            await #expect(throws: Never.self) { try await actor.sleep(for: .milliseconds(1)) }
        }
    }

    @Test
    func `The end of a turn comes once, after the jobs that the turn's jobs brought`() async {
        await withLoop { actor in
            let record = Record<String>()
            await actor.wait { (loop, continuation: CheckedContinuation<Void, Never>) in
                loop.atEndOfTurn(
                    Handler { _ in
                        record.append("end")
                        continuation.resume()
                    })
                Task(executorPreference: loop) {
                    record.append("job")
                    Task(executorPreference: loop) { record.append("job of the job") }
                }
            }
            #expect(record.all == ["job", "job of the job", "end"])
        }
    }

    @Test
    func `Blocking work leaves the loop free and returns or throws to its caller`() async throws {
        struct Refusal: Error {}
        try await withLoop { actor in
            let gate = Pipe()
            async let blocked = actor.loop.offload { () -> UInt8 in
                while true { if let byte = gate.read() { return byte } }
            }
            let isAlive = await actor.isCurrent
            #expect(isAlive)
            gate.write(7)
            #expect(try await blocked == 7)
            await #expect(throws: Refusal.self) { try await actor.loop.offload { throw Refusal() } }
            let numbers = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<200 { group.addTask { try await actor.loop.offload { number } } }
                return try await group.reduce(0, +)
            }
            #expect(numbers == 19_900)
            gate.close()
        }
    }

    @Test
    func `A stopped loop ends its thread, and the thread is not the loop's any more`() async throws {
        let loop = EventLoop()
        let ended = Pipe()
        // The pool of another loop provides the thread.
        let host = EventLoop.startThread(name: "host")
        async let ran: Bool = host.offload {
            loop.run()
            return loop.isCurrent
        }
        await OnLoop(loop).run { $0.stop() }
        #expect(try await ran == false)
        host.stop()
        ended.close()
    }
}
