import EventLoop

/// Requests that have arrived and are not looked at yet, in that order: for the time that the service takes, or until
/// it is let go on. Confined to the loop.
final class UnansweredRequests {
    private struct Entry {
        let stream: ServerStream
        let number: Int32
        let connection: ServerConnection
        let due: ContinuousClock.Instant
    }

    /// Time between the arrival of a request and the look at it.
    var delay: Duration
    private let loop: EventLoop
    private let serve: (ServerStream, ServerConnection) -> Void
    private var entries: [Entry] = []
    private var first = 0
    private var timer: TimerID?
    /// While set, nothing is looked at however long it waits.
    var isHeld = false {
        didSet { serveDue() }
    }

    /// Calls `serve` with each request after `delay`, unless its stream has ended meanwhile.
    init(delay: Duration, on loop: EventLoop, serve: @escaping (ServerStream, ServerConnection) -> Void) {
        self.delay = delay
        self.loop = loop
        self.serve = serve
    }

    /// How many wait, those that were given up among them.
    var count: Int { entries.count - first }

    /// A request has arrived.
    func add(_ stream: ServerStream, on connection: ServerConnection) {
        if delay == .zero, !isHeld, count == 0 { return serve(stream, connection) }
        entries.append(
            Entry(stream: stream, number: stream.number, connection: connection, due: .now + delay))
        armTimer()
    }

    /// Looks at the `count` that have waited longest, also while held.
    func serve(oldest count: Int) {
        for _ in 0..<min(count, self.count) { serveFirst() }
    }

    private func serveDue() {
        let now = ContinuousClock.now
        while !isHeld, count > 0, entries[first].due <= now { serveFirst() }
        armTimer()
    }

    private func serveFirst() {
        let entry = entries[first]
        first += 1
        if first == entries.count {
            entries.removeAll(keepingCapacity: true)
            first = 0
        } else if first > 4096 {
            entries.removeFirst(first)
            first = 0
        }
        if entry.connection.isOpen(entry.stream, number: entry.number) { serve(entry.stream, entry.connection) }
    }

    private func armTimer() {
        guard timer == nil, !isHeld, count > 0 else { return }
        timer = loop.arm(at: entries[first].due) { [weak self] in
            self?.timer = nil
            self?.serveDue()
        }
    }
}
