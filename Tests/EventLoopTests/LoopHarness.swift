import EventLoop
import Glibc

/// A loop on a thread of its own, and an actor to run test code on it.
actor OnLoop {
    nonisolated let loop: EventLoop

    init(_ loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    func run<Value: Sendable>(_ body: @Sendable (EventLoop) throws -> Value) rethrows -> Value {
        try body(loop)
    }

    /// Runs `body` with a continuation that something on the loop is to resume.
    func wait<Value: Sendable>(_ body: @Sendable (EventLoop, CheckedContinuation<Value, Never>) -> Void) async -> Value
    {
        await withCheckedContinuation { body(loop, $0) }
    }

    func sleep(for duration: Duration) async throws {
        try await loop.sleep(for: duration)
    }

    /// Whether actor-isolated code sees the loop's thread as its own.
    var isCurrent: Bool { loop.isCurrent }
}

/// Runs `body` beside a loop that is stopped afterwards.
func withLoop(_ body: (OnLoop) async throws -> Void) async rethrows {
    let loop = EventLoop.startThread(name: "loop-test")
    defer { loop.stop() }
    try await body(OnLoop(loop))
}

/// A list that any thread may append to.
final class Record<Element: Sendable>: Sendable {
    private let elements = Guarded<[Element]>([])

    func append(_ element: Element) {
        elements.withLock { $0.append(element) }
    }

    var all: [Element] { elements.withLock { $0 } }
}

/// A pipe without blocking.
struct Pipe: Sendable {
    let reader: Int32
    let writer: Int32

    init() {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0, "pipe failed: errno \(errno)")
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        reader = ends[0]
        writer = ends[1]
    }

    func write(_ byte: UInt8 = 1) {
        var byte = byte
        _ = Glibc.write(writer, &byte, 1)
    }

    /// The next byte, nil if there is none.
    func read() -> UInt8? {
        var byte: UInt8 = 0
        return Glibc.read(reader, &byte, 1) == 1 ? byte : nil
    }

    func close() {
        Glibc.close(reader)
        Glibc.close(writer)
    }
}

/// Calls a closure on readiness.
final class Handler: ReadinessHandler, EndOfTurnHandler {
    private let body: (Interest) -> Void

    init(_ body: @escaping (Interest) -> Void) {
        self.body = body
    }

    func descriptorReady(_ ready: Interest) {
        body(ready)
    }

    func turnEnded() {
        body([])
    }
}
