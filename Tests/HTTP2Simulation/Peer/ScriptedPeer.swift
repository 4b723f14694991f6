import Simulation

/// A provider's end of one connection: a real HTTP/2 server that answers, refuses, goes away and falls silent as the
/// dice say. It never lies about what it has not looked at.
final class ScriptedPeer {
    let number: Int
    private(set) var log = PeerLog()
    let session = PeerSession()

    let network: PipeNetwork
    let up: PipeDirection
    let down: PipeDirection
    private weak var transport: MemoryTransport?
    /// Written by the session and not taken by the pipe.
    private var pending: [UInt8] = []
    private var isReading = true
    private(set) var isClosed = false
    private var isFinishing = false
    private(set) var hasGreeted = false
    private var ignoresPings: Bool
    private var opensWindows: Bool
    /// Streams that are not closed.
    private(set) var open: Set<Int32> = []
    /// The most streams that the client knows it may have, and limits that it has not acknowledged; nil where a
    /// SETTINGS named none.
    private var limit = 1
    private var limitsUnderWay: [Int?] = []
    private var acknowledgements = 0

    init(_ transport: MemoryTransport, _ network: PipeNetwork) {
        self.network = network
        self.transport = transport
        number = transport.number
        up = transport.up
        down = transport.down
        ignoresPings = network.dice.strikes(.ignoresPings, -1, number)
        opensWindows = !network.dice.strikes(.closedWindow, -1, number)
        up.onArrival = { [weak self] in self?.read() }
        up.onRoom = { [weak transport] in transport?.roomCame() }
        down.onRoom = { [weak self] in self?.soon { $0.flush() } }
        planCuts()
        greet()
        later(500_000) { $0.moment(1) }
    }

    func later(_ delay: Int64, _ run: @escaping (ScriptedPeer) -> Void) {
        network.schedule(after: delay) { [weak self] in
            if let self, !isClosed { run(self) }
        }
    }

    private func soon(_ run: @escaping (ScriptedPeer) -> Void) { later(network.latency, run) }

    private func greet() {
        if network.dice.strikes(.noSettings, -1, number) { return }
        let isLate = network.dice.strikes(.lateSettings, -1, number)
        let delay = isLate ? Int64(network.draw(1000...12_000)) * 1000 : network.latency
        later(delay) { $0.sendFirstSettings() }
    }

    private func sendFirstSettings() {
        guard !hasGreeted else { return }
        hasGreeted = true
        announce(streams: network.plan.streams)
        read()
    }

    /// Changes settings, which are in force when the client says so.
    func announce(streams: Int? = nil, window: Int? = nil) {
        limitsUnderWay.append(streams)
        session.settings(streams: streams, window: window)
        network.note(number, "settings", streams ?? -1, window ?? -1)
        flush()
    }

    /// Faults end: what can go on goes on.
    func heal() {
        isReading = true
        ignoresPings = false
        opensWindows = true
        session.openWindows()
        guard !isClosed else { return }
        sendFirstSettings()
        announce(streams: 100, window: 65_535)
        read()
    }

    // MARK: Bytes

    private func read() {
        // A server greets before it says anything else.
        while isReading, hasGreeted, !isClosed, up.available > 0 {
            let isPart = network.draw(0...2) == 0
            session.receive(up.take(isPart ? network.draw(1...up.available) : up.available))
            handle(session.takeEvents())
        }
        if !isClosed, up.isAtEnd || session.failure != nil { return close() }
        if opensWindows { session.openWindows() }
        flush()
    }

    /// Writes what there is, as far as the pipe takes it.
    func flush() {
        guard !isClosed else { return }
        while true {
            if pending.isEmpty {
                pending = session.takeOutput()
                handle(session.takeEvents())
                log.wrote(pending)
            }
            guard !pending.isEmpty else { break }
            let sent = pending.withUnsafeBufferPointer { down.send($0) }
            pending.removeFirst(sent)
            if sent == 0 { return }
        }
        if isFinishing { close() }
    }

    func stopReading(for length: Int64) {
        isReading = false
        later(length) { peer in
            peer.isReading = true
            peer.read()
        }
    }

    // MARK: What the client does

    private func handle(_ events: [PeerSession.Event]) {
        for event in events {
            switch event {
            case .headers(let stream, let tag): begins(stream, tag)
            case .whole(let stream):
                if let record = log.records[stream] { think(record) }
            case .reset(let stream): network.note(number, "reset by the client", Int(stream))
            case .closed(let stream): open.remove(stream)
            case .settingsAcknowledged:
                acknowledged()
            case .ping(let data):
                network.note(number, "PING")
                if !ignoresPings { session.answerPing(data) }
            case .goAway(let code):
                if code != 0 { network.monitor.found("blamed", "connection \(number): the client says code \(code)") }
            case .fault(let words): network.monitor.found("HTTP/2", "connection \(number): \(words)")
            }
        }
    }

    private func acknowledged() {
        guard !limitsUnderWay.isEmpty else { return }
        // The first SETTINGS lifts what has to be assumed before it.
        let unnamed = acknowledgements == 0 ? Int.max : limit
        acknowledgements += 1
        limit = limitsUnderWay.removeFirst() ?? unnamed
    }

    private func begins(_ stream: Int32, _ tag: Int) {
        open.insert(stream)
        let record = PeerRecord(connection: number, stream: stream, tag: tag, at: network.clock)
        log.add(record)
        network.note(number, "request", Int(stream), tag)
        network.monitor.seen(record)
        if open.count > limit {
            network.monitor.found("too many streams", "connection \(number): \(open.count) of \(limit)")
        }
        if network.dice.strikes(.earlyAnswer, number, Int(stream)) { think(record) }
    }

    /// Looks at a request a little later; until then it was not looked at.
    private func think(_ record: PeerRecord) {
        guard !record.isThoughtOf else { return }
        record.isThoughtOf = true
        later(Int64(network.draw(network.plan.thinking))) { $0.decide(record) }
    }

    // MARK: The end

    /// Closes in order when all is written.
    func finish() {
        isFinishing = true
        flush()
    }

    /// The process closes its socket: what is on its way arrives, and nothing is taken any more.
    private func close() {
        guard !isClosed else { return }
        isClosed = true
        network.note(number, "closed by the peer")
        down.finish()
        up.swallow()
        // The client learns of it by a reset, in answer to whatever it sends.
        network.schedule(after: Int64(network.draw(network.plan.way))) { [weak transport = self.transport] in
            transport?.refuseWrites()
        }
    }

    private func planCuts() {
        let cuts: [PipeFault] = [
            .cutOff, .cutAfterLastWords, .blackHole, .deafPeer, .mutePeer, .closedInOrder,
        ]
        for cut in cuts where network.dice.strikes(cut, -1, number) {
            let direction = network.dice.draw(0...1, -1, number, salt: 1) == 0 ? up : down
            let isEarly = network.dice.draw(0...3, -1, number, salt: 2) == 0
            direction.cutAfter = network.dice.draw(0...(isEarly ? 200 : 6000), -1, number, salt: 3)
            direction.onCut = { [weak self] in self?.cut(cut) }
            return
        }
    }

    /// The connection breaks in one of its ways.
    func cut(_ kind: PipeFault) {
        guard network.dice.isOn else { return }
        network.note(number, "cut", kind.rawValue, 0, kind.name)
        switch kind {
        case .cutOff:
            isClosed = true
            up.reset()
            down.reset()
            transport?.refuseWrites()
        case .cutAfterLastWords:
            isClosed = true
            down.finish()
            up.swallow()
            transport?.refuseWrites()
        case .blackHole:
            up.swallow()
            down.swallow()
        case .deafPeer: up.swallow()
        case .mutePeer: down.swallow()
        default: close()
        }
    }
}
