import EventLoop
import Glibc

#if CRASH_POINTS
    import CrashPoints
#endif

/// A transport over TCP and TLS, through a proxy if there is one: from addresses to a verified TLS session.
///
/// Confined to the loop's thread.
final class SocketTransport: HTTP2Transport, ReadinessHandler {
    /// How far it is. `closed` can be reached from everywhere and has no exit.
    private enum Phase {
        /// Nobody has begun. Exit: `connecting`.
        case idle
        /// TCP to the addresses, of which one wins. Exits: `tunnelling`, `handshaking`.
        case connecting
        /// The proxy has been asked for a tunnel to the host. Exit: `handshaking`.
        case tunnelling
        /// TLS; nothing of a request leaves before the peer is verified and has agreed on `h2`. Exit: `open`.
        case handshaking
        case open
        case closed
    }

    weak var owner: (any HTTP2TransportOwner)?
    private(set) var peer: String

    private let environment: LoopEnvironment
    private var phase = Phase.idle
    private var race: AddressRace?
    /// The connected socket, as long as TLS does not own it.
    private var socket: Int32?
    private var tunnel: ProxyTunnel?
    private var stream: TLSStream?
    private var interest: Interest = []

    init(_ environment: LoopEnvironment) {
        self.environment = environment
        peer = environment.configuration.peer
    }

    private var loop: EventLoop { environment.loop }

    var progress: String {
        switch phase {
        case .connecting: race?.progress ?? ""
        case .tunnelling: "the proxy has not answered"
        case .handshaking: "TLS is not agreed on"
        case .idle, .open, .closed: ""
        }
    }

    // MARK: Being made

    func open(_ addresses: [SocketAddress]) {
        phase = .connecting
        let race = AddressRace(addresses, delay: environment.configuration.attemptDelay, on: loop) {
            [unowned self] winner in
            raceEnded(winner)
        }
        self.race = race
        race.start()
        #if CRASH_POINTS
            CrashPoint.connecting.reached()
        #endif
    }

    private func raceEnded(_ winner: AddressRace.Winner?) {
        let configuration = environment.configuration
        guard let winner else {
            if let address = race?.onlyAddress { peer = configuration.peer(at: address) }
            return failed(HTTP2ConnectionError(.connect, peer: peer, reason: race?.report ?? "no address"))
        }
        race = nil
        socket = winner.descriptor
        peer = configuration.peer(at: winner.address)
        guard let proxy = configuration.proxy else { return beginHandshake(winner.descriptor) }
        phase = .tunnelling
        tunnel = ProxyTunnel(
            proxy, target: configuration.tunnelTarget, descriptor: winner.descriptor, peer: peer)
        digTunnel()
    }

    private func digTunnel() {
        guard let socket else { return }
        switch tunnel?.step() {
        case .blocked(let interest): wait(for: interest, of: socket, self)
        case .open: beginHandshake(socket)
        case .failed(let error): failed(error)
        case nil: break
        }
    }

    private func beginHandshake(_ descriptor: Int32) {
        tunnel = nil
        phase = .handshaking
        do {
            let context = try environment.tlsContext()
            loop.unwatch(descriptor)
            interest = []
            socket = nil
            stream = try TLSStream(
                context, descriptor: descriptor, host: environment.configuration.host, peer: peer)
            handshake()
        } catch {
            failed(error)
        }
    }

    private func handshake() {
        guard let stream else { return }
        switch stream.handshake() {
        case .blocked(let interest):
            wait(for: interest, of: stream.descriptor, self)
        case .done:
            phase = .open
            // Whatever it is that the owner watches for, it is the owner that is to be told now.
            interest = []
            owner?.transportOpened()
        case .ended:
            failed(HTTP2ConnectionError(.tls, peer: peer, reason: "closed by the peer in the handshake"))
        case .failed(let error):
            failed(error)
        }
    }

    private func failed(_ error: HTTP2ConnectionError) {
        owner?.transportFailed(error)
    }

    func descriptorReady(_ ready: Interest) {
        switch phase {
        case .tunnelling: digTunnel()
        case .handshaking: handshake()
        case .idle, .connecting, .open, .closed: break
        }
    }

    /// While it is made, this is who is told that the socket is ready; afterwards the owner itself is.
    private func wait(for wanted: Interest, of descriptor: Int32, _ handler: any ReadinessHandler) {
        interest = wanted
        loop.watch(descriptor, for: wanted, handler: handler)
    }

    // MARK: Open

    func watch(_ wanted: Interest) {
        guard phase == .open, interest != wanted, let stream, let owner else { return }
        wait(for: wanted, of: stream.descriptor, owner)
    }

    func read(into buffer: UnsafeMutablePointer<UInt8>, capacity: Int) -> HTTP2TransportProgress {
        stream?.read(into: buffer, capacity: capacity) ?? .ended
    }

    var hasPending: Bool { stream?.hasPending ?? false }

    func write(_ buffer: UnsafePointer<UInt8>, count: Int) -> HTTP2TransportProgress {
        stream?.write(buffer, count: count) ?? .ended
    }

    func finish() {
        stream?.sendCloseNotify()
    }

    func close() {
        phase = .closed
        race?.cancel()
        race = nil
        tunnel = nil
        if let socket {
            loop.unwatch(socket)
            Glibc.close(socket)
            self.socket = nil
        }
        if let stream {
            loop.unwatch(stream.descriptor)
            self.stream = nil
        }
    }
}
