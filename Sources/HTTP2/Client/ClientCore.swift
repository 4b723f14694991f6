import EventLoop

/// All of a client's synchronous work: which request goes to which connection, and what becomes of it.
///
/// Confined to its environment's thread. One turn of the loop is one round of work: what has come is read first, then
/// results are handed out, then waiting requests are sent, and each connection writes once.
package final class ClientCore: EndOfTurnHandler {
    let configuration: HTTP2ClientConfiguration
    let environment: any HTTP2Environment
    let captured: CapturedHeaders
    let table: RequestTable
    private let answered: (inout HTTPResultBatch) -> Void
    private let stateChanged: (HTTP2ClientState) -> Void
    /// Asks for the addresses of the host on behalf of connection `number`. Holds the client, from its first use until
    /// it is closed.
    package var resolve: ((_ number: Int) -> Void)?

    /// Connections in the order in which they were made; the first ones are used first.
    var connections: [HTTP2Connection] = []
    var connectionsMade = 0
    var statistics = HTTP2Statistics()
    /// Connections in a row that brought nothing.
    var failuresInRow = 0
    /// When the next connection may be made, if not at once; nobody connects before.
    var retryAt: ContinuousClock.Instant?
    /// Since when all streams are taken while requests wait.
    var crowdedSince: ContinuousClock.Instant?
    /// The number of streams that was told last; nil while down.
    var toldStreams: Int?
    private(set) var isClosing = false
    var closeWaiters: [UnsafeContinuation<Void, Never>] = []
    var closeDeadline: ContinuousClock.Instant?

    private var results = HTTPResultBatch()
    private var turnIsWanted = false
    private var timer: (id: TimerID, due: ContinuousClock.Instant)?

    /// What one read takes: two TLS records.
    static let readCapacity = 32 * 1024
    let readBuffer = UnsafeMutablePointer<UInt8>.allocate(capacity: ClientCore.readCapacity)

    /// A client that connects when the first request is submitted. `answered` and `stateChanged` are called as
    /// `HTTP2Client` says.
    package init(
        _ configuration: HTTP2ClientConfiguration, in environment: any HTTP2Environment,
        answered: @escaping (inout HTTPResultBatch) -> Void,
        stateChanged: @escaping (HTTP2ClientState) -> Void
    ) {
        configuration.check()
        self.configuration = configuration
        self.environment = environment
        self.answered = answered
        self.stateChanged = stateChanged
        captured = CapturedHeaders(configuration.capturedHeaders)
        table = RequestTable(capacity: configuration.concurrency + configuration.queueLimit)
    }

    deinit {
        readBuffer.deallocate()
    }

    // MARK: Requests

    /// Requests in flight.
    var inFlight: Int { table.all.count - table.waiting.count }

    /// Streams that open connections allow together.
    var streamsAllowed: Int {
        var sum = 0
        for connection in connections where connection.state == .open {
            sum += min(connection.session.streamLimit, configuration.concurrency)
        }
        return min(sum, configuration.concurrency)
    }

    /// How many more requests may be submitted now. Requests that wait for a stream tell that another connection would
    /// help; where none may be made, they would only grow old here. The queue is never longer than what the peers let
    /// us send at once.
    package func capacity(at now: ContinuousClock.Instant) -> Int {
        if isClosing || (retryAt.map { $0 > now } ?? false) && !connections.contains(where: { $0.state == .open }) {
            return 0
        }
        let isOpen = connections.contains { $0.state == .open }
        let allowed = isOpen ? streamsAllowed : 1
        let mayGrow = allowed < configuration.concurrency && connections.count < configuration.connectionsMax
        let queue = mayGrow || !isOpen ? min(configuration.queueLimit, max(1, allowed)) : 0
        return max(0, allowed + queue - table.all.count)
    }

    /// Queues a batch; what there is no room for is given back as `notSent`.
    package func submit(_ batch: borrowing HTTPRequestBatch) {
        let now = environment.now
        let taken = isClosing ? 0 : table.add(batch, at: now)
        let reason = isClosing ? HTTPFaultReason.closed : .noConnection
        for request in batch.requests[taken...] {
            results.add(HTTPResult(tag: request.tag, outcome: .failure(.notSent(reason)), sentAt: nil, endedAt: now))
        }
        if taken > 0 { arm(at: now + configuration.queueTimeout) }
        wantTurn()
    }

    /// Gives a request its result.
    func end(_ slot: RequestPointer, _ fault: HTTPFault, at now: ContinuousClock.Instant) {
        var sentAt: ContinuousClock.Instant?
        if case .unanswered = fault { sentAt = slot.pointee.sentAt }
        results.add(
            HTTPResult(
                tag: slot.pointee.request.pointee.tag, outcome: .failure(fault), sentAt: sentAt, endedAt: now))
        table.remove(slot)
    }

    /// Gives a request its answer.
    func answer(_ slot: RequestPointer, at now: ContinuousClock.Instant) {
        let buffer = slot.pointee.buffer
        var captured = InlineArray<4, ByteSlice>(repeating: .empty)
        var body = ByteSlice.empty
        if buffer.count > 0 {
            let whole = results.append(UnsafeBufferPointer(start: buffer.start, count: buffer.count))
            let start = Int(whole.start)
            for index in 0..<self.captured.count {
                let slice = slot.pointee.captured[index]
                captured[index] = ByteSlice(start: start + Int(slice.start), count: Int(slice.count))
            }
            let bodyStart = slot.pointee.bodyStart
            body = ByteSlice(start: start + bodyStart, count: buffer.count - bodyStart)
        }
        let response = HTTPResponse(
            status: slot.pointee.status, captured: captured, body: body, bodyWasCut: slot.pointee.bodyWasCut,
            afterIdle: slot.pointee.afterIdle)
        statistics.answers += 1
        results.add(
            HTTPResult(
                tag: slot.pointee.request.pointee.tag, outcome: .success(response), sentAt: slot.pointee.sentAt,
                endedAt: now))
        table.remove(slot)
    }

    /// Ends every request that waits, as `notSent`.
    package func endWaiting(_ reason: HTTPFaultReason, at now: ContinuousClock.Instant) {
        while let slot = table.waiting.first { end(slot, .notSent(reason), at: now) }
        wantTurn()
    }

    // MARK: A turn

    /// Queues the work of this turn's end, once.
    func wantTurn() {
        guard !turnIsWanted else { return }
        turnIsWanted = true
        environment.atEndOfTurn(self)
    }

    /// A round of work: see above.
    package func turnEnded() {
        deliver()
        // Only now: what the receiver submits from within is sent below and needs no further turn.
        turnIsWanted = false
        let now = environment.now
        connectIfNeeded(at: now)
        endOverdue(at: now)
        pump(at: now)
        // A connection may close while it is written to, so this is not a walk over `connections` itself.
        let written = connections
        for connection in written { connection.flush() }
        noteCrowding(at: now)
        noteHeldBack(at: now)
        tellStreams()
        if !results.results.isEmpty { wantTurn() }
        finishClosing(at: now)
    }

    /// Hands out what has ended. The receiver may submit more from within.
    private func deliver() {
        guard !results.results.isEmpty else { return }
        var batch = HTTPResultBatch()
        swap(&batch, &results)
        answered(&batch)
        // The memory is used again, unless the receiver has caused new results meanwhile.
        batch.removeAll()
        if results.results.isEmpty { swap(&batch, &results) }
    }

    private func pump(at now: ContinuousClock.Instant) {
        guard table.waiting.count > 0 else { return }
        let usable = connections
        for connection in usable {
            while inFlight < configuration.concurrency, let slot = table.waiting.first,
                connection.hasRoom(bodySize: Int(slot.pointee.request.pointee.body.count))
            {
                guard !slot.pointee.isOverdue(at: now) else {
                    end(slot, .notSent(.overdue), at: now)
                    continue
                }
                table.take(slot)
                send(slot, to: connection, at: now)
            }
        }
    }

    /// Idle time after which an answer is marked, because gateways are known to fail the first push after it.
    private static let idleMark = Duration.seconds(60)

    private func send(_ slot: RequestPointer, to connection: HTTP2Connection, at now: ContinuousClock.Instant) {
        if connection.session.nextStreamID > UInt32(configuration.streamIDMax) {
            table.putBack(slot)
            return connection.retire(
                HTTP2ConnectionError(.retired, peer: connection.peer, reason: "out of stream ids"))
        }
        if connection.session.openStreams == 0 { arm(at: now + configuration.pingAfter) }
        slot.pointee.tries += 1
        slot.pointee.sentAt = now
        slot.pointee.connection = connection.number
        slot.pointee.afterIdle = now - connection.lastRequestAt >= Self.idleMark
        guard connection.send(slot, at: now) else {
            slot.pointee.tries -= 1
            table.putBack(slot)
            return connection.retire(
                HTTP2ConnectionError(.retired, peer: connection.peer, reason: "no stream could be opened"))
        }
        statistics.sent += 1
    }

    /// The counts, with what is true now.
    package var currentStatistics: HTTP2Statistics {
        var current = statistics
        current.waiting = table.waiting.count
        current.inFlight = inFlight
        current.streamLimit = streamsAllowed
        current.connections = connections.count { $0.state == .open }
        return current
    }

    // MARK: Telling

    func tell(_ state: HTTP2ClientState) {
        stateChanged(state)
    }

    private func tellStreams() {
        guard connections.contains(where: { $0.state == .open }) else { return }
        let allowed = streamsAllowed
        guard allowed != toldStreams else { return }
        toldStreams = allowed
        tell(.up(streams: allowed))
    }

    // MARK: Time

    /// Makes sure that `tick` runs at `due` or before.
    func arm(at due: ContinuousClock.Instant) {
        if let timer {
            guard due < timer.due else { return }
            environment.cancel(timer.id)
        }
        let id = environment.arm(at: due) { [weak self] in self?.timerFired() }
        timer = (id, due)
    }

    private func timerFired() {
        timer = nil
        tick(at: environment.now)
        wantTurn()
    }

    // MARK: Closing

    /// Refuses new requests, gives back the waiting ones and closes when those in flight have ended, or at `deadline`.
    package func beginClosing(by deadline: ContinuousClock.Instant) {
        isClosing = true
        closeDeadline = min(closeDeadline ?? deadline, deadline)
        endWaiting(.closed, at: environment.now)
        arm(at: deadline)
        wantTurn()
    }
}
