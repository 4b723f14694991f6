import EventLoop
import Testing

@testable import DispatchRuntime

/// An actor that waits for its own signal.
private actor Waiter {
    private let loop: EventLoop
    private let signal: LoopSignal
    private(set) var wakes = 0

    init(_ loop: EventLoop) {
        self.loop = loop
        signal = LoopSignal(on: loop)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func wait(_ limit: Duration) async {
        await signal.wait(until: .now + limit)
        wakes += 1
    }

    func ring() { signal.ring() }
}

@Suite struct LoopSignalTests {
    @Test func aRingBeforeTheWaitIsKept() async {
        let loop = EventLoop.startThread(name: "signal")
        let waiter = Waiter(loop)
        await Task(executorPreference: loop) {
            await waiter.ring()
            await waiter.ring()
            // An hour: only the kept ring can end it.
            await waiter.wait(.seconds(3600))
        }.value
        #expect(await waiter.wakes == 1)
        loop.stop()
    }

    @Test func aRingWakesTheWaiter() async {
        let loop = EventLoop.startThread(name: "signal")
        let waiter = Waiter(loop)
        let waiting = Task(executorPreference: loop) { await waiter.wait(.seconds(3600)) }
        await Task(executorPreference: loop) { await waiter.ring() }.value
        await waiting.value
        #expect(await waiter.wakes == 1)
        loop.stop()
    }

    @Test func theDeadlineEndsAWaitThatNobodyRings() async {
        let loop = EventLoop.startThread(name: "signal")
        let waiter = Waiter(loop)
        await Task(executorPreference: loop) {
            await waiter.wait(.milliseconds(20))
            await waiter.wait(.milliseconds(1))
        }.value
        #expect(await waiter.wakes == 2)
        loop.stop()
    }
}
