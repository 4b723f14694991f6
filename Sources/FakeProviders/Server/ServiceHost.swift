import EventLoop
import Glibc

/// What the stand-ins share: a listening socket with TLS, its connections, and those who wait for requests. Loop only.
final class ServiceHost {
    private struct Waiter {
        let number: Int
        let count: Int
        let timer: TimerID
        let resume: () -> Void
    }

    let loop: EventLoop
    /// The connections that are open, by number.
    private(set) var connections: [Int: ServerConnection] = [:]
    /// While set, nothing is read from any connection or written to one, new ones among them.
    var isFrozen = false {
        didSet {
            for connection in connections.values { connection.isFrozen = isFrozen }
        }
    }
    /// Connections that were taken so far.
    private(set) var connectionsSoFar = 0
    private let tls: TLSServerContext
    private let settings: ServerSettings
    private weak var handler: (any RequestHandler)?
    private var listener: ListeningSocket?
    private var waiters: [Waiter] = []
    private var waitersSoFar = 0

    /// Listens on nothing yet. Throws when the certificate cannot be used.
    init(
        _ identity: ServerIdentity, offersHTTP2: Bool = true, settings: ServerSettings, on loop: EventLoop
    ) throws(FakeServerError) {
        self.loop = loop
        self.settings = settings
        tls = try TLSServerContext(identity, offersHTTP2: offersHTTP2)
    }

    /// Starts to listen, hands every request to `handler`, and answers the port.
    func start(host: String, port: UInt16, handler: any RequestHandler) throws(FakeServerError) -> UInt16 {
        // A client that goes away must cost an error code, not the process.
        signal(SIGPIPE, SIG_IGN)
        self.handler = handler
        let listener = try ListeningSocket(host: host, port: port, on: loop) { [unowned self] in accept($0) }
        self.listener = listener
        return listener.port
    }

    /// Ends everything at once.
    func stop() {
        listener?.stop()
        listener = nil
        dropConnections()
        for waiter in waiters {
            loop.cancel(waiter.timer)
            waiter.resume()
        }
        waiters.removeAll()
    }

    /// Closes all connections without a word.
    func dropConnections() {
        for connection in Array(connections.values) { connection.close() }
    }

    /// To be called when a connection is gone.
    func forget(_ connection: ServerConnection) {
        connections[connection.number] = nil
    }

    /// Calls `resume` once `count` requests were seen of which `seen` were so far, at `deadline` at the latest.
    func wait(for count: Int, seen: Int, until deadline: ContinuousClock.Instant, resume: @escaping () -> Void) {
        guard seen < count else { return resume() }
        waitersSoFar += 1
        let number = waitersSoFar
        let timer = loop.arm(at: deadline) { [weak self] in
            self?.waiters.removeAll { $0.number == number }
            resume()
        }
        waiters.append(Waiter(number: number, count: count, timer: timer, resume: resume))
    }

    /// Lets those go on who waited for as many requests as `seen`.
    func wakeWaiters(seen: Int) {
        guard !waiters.isEmpty else { return }
        for waiter in waiters where waiter.count <= seen {
            loop.cancel(waiter.timer)
            waiter.resume()
        }
        waiters.removeAll { $0.count <= seen }
    }

    private func accept(_ descriptor: Int32) {
        guard let handler, let ssl = tls.accept(descriptor) else {
            close(descriptor)
            return
        }
        connectionsSoFar += 1
        let connection = ServerConnection(
            number: connectionsSoFar, descriptor: descriptor, ssl: ssl, settings: settings, on: loop, handler: handler)
        connections[connectionsSoFar] = connection
        connection.isFrozen = isFrozen
        connection.start()
    }
}
