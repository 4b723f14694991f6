import EventLoop

#if CRASH_POINTS
    import CrashPoints
#endif

/// One connection: from a name to a transport, the HTTP/2 session on it, and the bytes between the two.
///
/// Confined to the loop's thread. It makes no decisions about requests; it tells its client what happened.
final class HTTP2Connection: HTTP2TransportOwner, EndOfTurnHandler {
    /// Which of the client's connections it is, counted from 1.
    let number: Int
    private(set) var state = ConnectionState.resolving
    let session: HTTP2Session
    /// Host and port, and the address once it is known; for messages.
    var peer: String { transport.peer }

    /// When the phase of being made has to be over.
    let connectDeadline: ContinuousClock.Instant
    /// When the connection opened; its age counts from here.
    private(set) var openedAt: ContinuousClock.Instant
    /// When it is replaced, however well it does.
    private(set) var endOfLife: ContinuousClock.Instant
    /// When bytes last came.
    var lastReadAt: ContinuousClock.Instant
    /// When a request was last handed over.
    var lastRequestAt: ContinuousClock.Instant
    /// When the streams of now began to be awaited: silence counts from here or from the last bytes.
    var busySince: ContinuousClock.Instant
    /// Since when requests wait although no stream is open, because the peer's limit or windows let none through, or it
    /// reads nothing; ends with the next bytes of the peer or the next request.
    var heldBackSince: ContinuousClock.Instant?
    /// When the PING that nobody has answered yet was sent.
    var pingSentAt: ContinuousClock.Instant?

    /// Answers below 500.
    var goodAnswers = 0
    /// Unanswered requests since the last answer.
    var timeoutsInRow = 0
    /// Answers with 500 since the last other one.
    var serverErrorsInRow = 0
    /// GOAWAYs that the client has been told of.
    private var goAwaysTold = 0
    /// Why it is drained.
    private(set) var retirement: HTTP2ConnectionError?
    /// When it is closed although streams are open: no request is that old, so nobody waits for them.
    private(set) var drainDeadline: ContinuousClock.Instant?

    private unowned let client: ClientCore
    private let transport: any HTTP2Transport
    private let output = OutputBuffer()
    /// The transport took less than we had; nothing more is made until it is writable.
    private var isBlocked = false

    init(number: Int, client: ClientCore, at now: ContinuousClock.Instant) {
        self.number = number
        self.client = client
        session = HTTP2Session(client.configuration, captured: client.captured, at: now)
        transport = client.environment.makeTransport(number: number)
        connectDeadline = now + client.configuration.connectTimeout
        openedAt = now
        endOfLife = now + client.configuration.connectionLifetime * client.environment.draw(90...100) / 100
        lastReadAt = now
        lastRequestAt = now
        busySince = now
        transport.owner = self
    }

    // MARK: Being made

    /// Goes on once the addresses are known.
    func resolved(_ result: Result<[SocketAddress], HTTP2ConnectionError>) {
        guard state == .resolving else { return }
        switch result {
        case .success(let addresses):
            state = .connecting
            transport.open(addresses)
        case .failure(let error):
            close(error)
        }
    }

    func transportOpened() {
        guard state == .connecting else { return }
        state = .settling
        transport.watch(.readable)
        flush()
        // The peer's first bytes may have come along with the end of the handshake.
        if state != .closed { receive() }
    }

    func transportFailed(_ error: HTTP2ConnectionError) {
        if state == .connecting { close(error) }
    }

    /// What a connection that is not open yet waits for, for messages.
    var progress: String {
        switch state {
        case .resolving: "the name is not resolved"
        case .connecting: transport.progress
        case .settling: "the peer has sent no SETTINGS"
        case .open, .draining, .closed: ""
        }
    }

    // MARK: Ready

    func descriptorReady(_ ready: Interest) {
        switch state {
        case .settling, .open, .draining:
            if ready.contains(.readable) { receive() }
            if state != .closed, ready.contains(.writable) {
                isBlocked = false
                // Before anything is sent: a request is only sent when its frames find room in the output.
                write()
                client.wantTurn()
            }
        case .resolving, .connecting, .closed:
            break
        }
    }

    /// Bytes of one wake-up; what is left has to wait until other descriptors had their turn.
    private static let bytesInRow = 128 * 1024

    /// Takes what has come; `untilDry` also what nobody has told us of yet.
    private func receive(atMost limit: Int = bytesInRow, untilDry: Bool = false) {
        let now = client.environment.now
        let buffer = client.readBuffer
        var trouble: HTTP2ConnectionError?
        var left = limit
        reading: while true {
            switch transport.read(into: buffer, capacity: ClientCore.readCapacity) {
            case .done(let count):
                lastReadAt = now
                if heldBackSince != nil { heldBackSince = nil }
                #if CRASH_POINTS
                    if session.openStreams > 0 { CrashPoint.answerReceived.reached() }
                #endif
                if pingSentAt != nil { pingAnswered() }
                session.receive(buffer, count: count, at: now)
                guard session.failure == nil, untilDry || transport.hasPending else { break reading }
                left -= count
                if left <= 0 {
                    // Nobody reports what waits inside the transport.
                    client.environment.atEndOfTurn(self)
                    break reading
                }
            case .blocked(let interest):
                if interest == .writable { isBlocked = true }
                break reading
            case .ended:
                trouble = HTTP2ConnectionError(.closedByPeer, peer: peer, reason: "closed in order")
                break reading
            case .failed(let error):
                trouble = error
                break reading
            }
        }
        tell(at: now)
        if let trouble, state != .closed { close(trouble) }
        client.wantTurn()
    }

    /// Any frame will do as a sign of life.
    private func pingAnswered() {
        pingSentAt = nil
        if let due = client.nextLook(after: self) { client.arm(at: due) }
    }

    func turnEnded() {
        if state == .settling || state == .open || state == .draining { receive() }
    }

    /// Tells the client what the session has noted.
    private func tell(at now: ContinuousClock.Instant) {
        if state == .settling, session.hasSettings {
            state = .open
            openedAt = now
            #if CRASH_POINTS
                CrashPoint.connected.reached()
            #endif
            client.opened(self)
        }
        if goAwaysTold < session.goAways, let goAway = session.goAway {
            client.statistics.goAways += session.goAways - goAwaysTold
            goAwaysTold = session.goAways
            let words = goAway.debugData.isEmpty ? "no reason given" : goAway.debugData
            retire(HTTP2ConnectionError(.goneAway, peer: peer, reason: "code \(goAway.code): \(words)"))
        }
        guard !session.ended.isEmpty else { return }
        for ended in session.ended { client.streamEnded(ended, on: self, at: now) }
        session.ended.removeAll(keepingCapacity: true)
    }

    // MARK: Sending

    /// Whether every stream the peer allows is taken.
    var isFull: Bool { session.openStreams >= session.streamLimit }

    /// Whether a request with a body of `bodySize` may be handed over now.
    ///
    /// A request whose body would wait for the peer's connection window is better kept: it stays *not sent*.
    func hasRoom(bodySize: Int) -> Bool {
        guard state == .open, !isBlocked, session.openStreams < session.streamLimit else { return false }
        let window = session.sendWindow
        return window >= bodySize || (window > 0 && session.openStreams == 0)
    }

    /// Opens a stream for `slot` and makes its frames; false when the session would not, and the request is unsent.
    ///
    /// This is where *sent* begins: on return its HEADERS is in the output buffer, which is written at once or at the
    /// end of the turn, and nobody tells afterwards how far the bytes got.
    func send(_ slot: RequestPointer, at now: ContinuousClock.Instant) -> Bool {
        if session.openStreams == 0 { busySince = now }
        guard session.submit(slot) else { return false }
        session.fill(output)
        guard !session.takeWithheld() else { return false }
        lastRequestAt = now
        if heldBackSince != nil { heldBackSince = nil }
        #if CRASH_POINTS
            CrashPoint.requestFramed.reached()
        #endif
        if output.isFull { write() }
        return true
    }

    /// Writes all that can be written, and closes a session that is over.
    func flush() {
        guard state == .settling || state == .open || state == .draining else { return }
        while !isBlocked, state != .closed {
            if output.isEmpty { session.fill(output) }
            if output.isEmpty { break }
            write()
        }
        guard state != .closed else { return }
        transport.watch(isBlocked ? [.readable, .writable] : .readable)
        tell(at: client.environment.now)
        if let failure = session.failure {
            close(HTTP2ConnectionError(.protocolViolation, peer: peer, reason: failure))
        } else if output.isEmpty, session.isOver {
            close(ending)
        } else if state == .draining, session.openStreams == 0 {
            close(ending)
        }
    }

    private var ending: HTTP2ConnectionError {
        if let violation = session.violation {
            return HTTP2ConnectionError(.protocolViolation, peer: peer, reason: violation)
        }
        return retirement ?? HTTP2ConnectionError(.protocolViolation, peer: peer, reason: "the peer broke HTTP/2")
    }

    private func write() {
        while !output.isEmpty {
            switch transport.write(output.front, count: output.pending) {
            case .done(let count):
                output.consume(count)
                #if CRASH_POINTS
                    if session.openStreams > 0 { CrashPoint.requestWritten.reached() }
                #endif
            case .blocked:
                isBlocked = true
                return
            case .ended:
                return closeAfterHearing(
                    HTTP2ConnectionError(.closedByPeer, peer: peer, reason: "closed in order"))
            case .failed(let error):
                return closeAfterHearing(error)
            }
        }
    }

    /// The most that can wait unread in a transport; nothing is added to it any more.
    private static let lastWordsLimit = 16 * 1024 * 1024

    /// The peer takes nothing more, because of `error`. What it said before is still there to be read: answers, and the
    /// GOAWAY that tells which requests it never looked at. Without them all of those would count as unanswered.
    private func closeAfterHearing(_ error: HTTP2ConnectionError) {
        output.consume(output.pending)
        receive(atMost: Self.lastWordsLimit, untilDry: true)
        close(error)
    }

    // MARK: The end

    /// Opens no more streams, because of `error`, and closes when those that are open have ended.
    func retire(_ error: HTTP2ConnectionError) {
        if state.isBeingMade { return close(error) }
        guard state == .open else { return }
        state = .draining
        retirement = error
        let deadline = client.environment.now + client.configuration.requestTimeout
        drainDeadline = deadline
        client.arm(at: deadline)
        client.draining(self, error)
        client.wantTurn()
    }

    /// Ends it now. Its open requests are the client's to judge.
    func close(_ error: HTTP2ConnectionError) {
        guard state != .closed else { return }
        tell(at: client.environment.now)
        guard state != .closed else { return }
        let wasOpen = !state.isBeingMade
        state = .closed
        if wasOpen { sayGoodbye() }
        transport.close()
        client.closed(self, error, wasOpen: wasOpen)
    }

    private func sayGoodbye() {
        guard output.isEmpty, session.failure == nil, !isBlocked else { return }
        session.terminate()
        session.fill(output)
        while !output.isEmpty, case .done(let count) = transport.write(output.front, count: output.pending) {
            output.consume(count)
        }
        transport.finish()
    }
}
