import EventLoop
import HTTP2
import Simulation

/// The client's end of a connection in memory, with the habits of a socket below TLS: it takes and gives pieces of any
/// size, tells only of what its kernel holds, and keeps for itself what it has taken from there.
final class MemoryTransport: HTTP2Transport {
    weak var owner: (any HTTP2TransportOwner)?
    let number: Int
    let up: PipeDirection
    let down: PipeDirection
    /// What of the connection the client can know.
    let view: ClientView
    /// Every write fails: the peer has closed, or the network did.
    private(set) var writesFail = false
    private(set) var isClosed = false
    /// Bytes of the peer that had come when the client closed.
    private(set) var arrivedAtClose = 0

    private unowned let network: PipeNetwork
    private unowned let loop: VirtualLoop
    private var interest: Interest = []
    /// Taken from the kernel and not read.
    private var inside: ArraySlice<UInt8> = []
    private let isPiecemeal: Bool

    init(_ number: Int, _ network: PipeNetwork, on loop: VirtualLoop) {
        self.number = number
        self.network = network
        self.loop = loop
        let isSmall = network.dice.strikes(.smallBuffers, -1, number)
        let capacity = isSmall ? network.draw(64...4096) : network.draw(64 * 1024...512 * 1024)
        up = PipeDirection(network, capacity: capacity, way: network.plan.way)
        down = PipeDirection(network, capacity: capacity, way: network.plan.way)
        view = ClientView(number, network)
        isPiecemeal = network.draw(0...3) == 0
        down.onArrival = { [weak self] in self?.loop.poll() }
    }

    var peer: String { "peer \(number)" }
    var progress: String { "nobody answers" }

    // MARK: Being made

    func open(_ addresses: [SocketAddress]) {
        let way = Int64(network.draw(network.plan.way)) * 3
        if network.dice.strikes(.connectHangs, -1, number) { return }
        if network.dice.strikes(.connectRefused, -1, number) {
            let error = HTTP2ConnectionError(.connect, peer: peer, reason: "refused")
            return later(way) { $0.owner?.transportFailed(error) }
        }
        let isSlow = network.dice.strikes(.slowConnect, -1, number)
        let delay = isSlow ? Int64(network.draw(1000...15_000)) * 1000 : way
        later(delay) { transport in
            transport.network.note(transport.number, "connects")
            transport.network.peers.append(ScriptedPeer(transport, transport.network))
            transport.owner?.transportOpened()
        }
    }

    private func later(_ delay: Int64, _ run: @escaping (MemoryTransport) -> Void) {
        network.schedule(after: delay) { [weak self] in
            guard let self, !isClosed else { return }
            loop.perform { [weak self] in
                if let self, !isClosed { run(self) }
            }
        }
    }

    // MARK: For the client

    func read(into buffer: UnsafeMutablePointer<UInt8>, capacity: Int) -> HTTP2TransportProgress {
        if inside.isEmpty {
            guard down.available > 0 else { return whatElse }
            let isPart = network.draw(0...2) == 0
            inside = down.take(min(32 * 1024, isPart ? network.draw(1...down.available) : down.available))[...]
        }
        var count = min(capacity, inside.count)
        if isPiecemeal { count = network.draw(1...min(count, 600)) }
        inside.withUnsafeBufferPointer { bytes in
            if let start = bytes.baseAddress { buffer.update(from: start, count: count) }
        }
        view.read(inside.prefix(count))
        inside = inside.dropFirst(count)
        return .done(count)
    }

    private var whatElse: HTTP2TransportProgress {
        switch down.end {
        case nil: .blocked(.readable)
        case .orderly: .ended
        case .reset: .failed(broken)
        }
    }

    private var broken: HTTP2ConnectionError {
        HTTP2ConnectionError(.closedByPeer, peer: peer, reason: "reset")
    }

    var hasPending: Bool { !inside.isEmpty }

    func write(_ buffer: UnsafePointer<UInt8>, count: Int) -> HTTP2TransportProgress {
        if writesFail {
            view.writeFailed()
            return .failed(broken)
        }
        let most = isPiecemeal ? network.draw(1...min(count, 600)) : min(count, 16 * 1024)
        let sent = up.send(UnsafeBufferPointer(start: buffer, count: most))
        view.wrote(UnsafeBufferPointer(start: buffer, count: sent))
        view.isBlocked = sent == 0
        return sent > 0 ? .done(sent) : .blocked(.writable)
    }

    func watch(_ wanted: Interest) {
        interest = wanted
        loop.poll()
    }

    /// What of it the client is waiting for and would be told of now. An error is reported as everything.
    var ready: Interest {
        guard !isClosed else { return [] }
        if writesFail, down.isAtEnd { return interest }
        var ready: Interest = []
        if down.available > 0 || down.isAtEnd { ready.insert(.readable) }
        if up.room > 0 || writesFail { ready.insert(.writable) }
        return ready.intersection(interest)
    }

    func finish() {
        up.finish()
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        arrivedAtClose = down.arrivedCount
        network.note(number, "closed by the client")
        up.finish()
        loop.forget(self)
    }

    // MARK: For the network

    /// The peer, or what is between, refuses all that is sent from now on.
    func refuseWrites() {
        writesFail = true
        loop.poll()
    }

    /// There is room again.
    func roomCame() { loop.poll() }
}
