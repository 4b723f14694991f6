import CLibPQ
import COpenSSL
import EventLoop

/// An open `PGconn` on the loop: sends without blocking, hands out results as they arrive, notices the end.
///
/// Confined to the loop by the actor that owns it. One statement or one pipeline is under way at a time. States: open
/// (→ broken by the peer while a statement is under way, → ended); broken (→ ended when the statement has taken what
/// had still arrived); ended is final and has a reason.
final class Wire: ReadinessHandler {
    private let loop: EventLoop
    private let socket: Int32
    /// Nil once ended.
    private var connection: OpaquePointer?
    /// Why it broke or was ended; nil while it is open.
    private(set) var reason: PostgresError?
    private var isBroken = false
    private var isInUse = false
    private var isFlushed = true
    private var waiter: UnsafeContinuation<Void, Never>?
    /// What the server said last before it ended the session, while no statement was under way.
    private var farewell: PostgresError?
    /// Gets the channels of the notifications that have arrived.
    var notified: ((_ channel: String) -> Void)?
    /// Gets the reason once, when the connection has ended.
    var ended: ((PostgresError) -> Void)?

    /// Takes the ownership of the `PGconn` at `address`; nothing is watched until `start()`.
    init(owning address: UInt, on loop: EventLoop) {
        self.loop = loop
        connection = OpaquePointer(bitPattern: address)
        socket = PQsocket(connection)
    }

    var isOpen: Bool { connection != nil && !isBroken }

    /// Whether the session is outside a transaction block.
    var isOutsideTransaction: Bool { PQtransactionStatus(connection) == PQTRANS_IDLE }

    func start() {
        // Without a receiver libpq prints notices to standard error.
        let context = Unmanaged.passUnretained(self).toOpaque()
        PQsetNoticeReceiver(connection, receiveNotice, context)
        loop.watch(socket, for: .readable, handler: self)
    }

    /// A statement begins. What arrives for it is kept until `endUse()`, even if the connection breaks meanwhile.
    func beginUse() {
        isInUse = true
    }

    func endUse() {
        isInUse = false
        if isBroken, let reason { end(reason) }
    }

    /// Ends the connection; later calls change nothing.
    func end(_ reason: PostgresError) {
        guard let connection else { return }
        stopWatching()
        self.connection = nil
        self.reason = reason
        isBroken = true
        PQfinish(connection)
        resumeWaiter()
        ended?(reason)
        ended = nil
        notified = nil
    }

    /// libpq has found the connection broken and has closed its socket.
    private func breakDown() {
        let reason = farewell ?? PostgresError(.connection, operation: "connection", message: lastMessage)
        guard isInUse else { return end(reason) }
        stopWatching()
        self.reason = reason
        isBroken = true
        resumeWaiter()
    }

    private func stopWatching() {
        // Once only: a closed descriptor's number may belong to somebody else by now.
        if !isBroken { loop.unwatch(socket) }
    }

    private func resumeWaiter() {
        waiter?.resume()
        waiter = nil
    }

    /// Why nothing can be done here any more, told to the caller of `operation`.
    func failure(_ operation: String, wasSent: Bool) -> PostgresError {
        guard let reason else { preconditionFailure("an open connection has no reason to fail") }
        if wasSent { return reason.during(operation, mayHaveRun: true) }
        return PostgresError(.closed, operation: operation, message: reason.message)
    }

    // MARK: Sending

    /// Queues what `submit` hands to libpq; `flush()` puts it on the wire. Throws when libpq refuses.
    func submit(_ operation: String, _ submit: (OpaquePointer) -> Int32) throws(PostgresError) {
        guard isOpen, let connection else { throw failure(operation, wasSent: false) }
        guard submit(connection) == 1 else {
            let error = PostgresError(.connection, operation: operation, message: lastMessage)
            // What libpq has taken of it is unknown, so the session is of no use any more.
            end(error)
            throw error
        }
    }

    /// Writes as much as the socket takes; the rest follows when it takes more.
    func flush() {
        guard isOpen, let connection else { return }
        let wasFlushed = isFlushed
        // A failure to write is reported by libpq on reading, after what the server may have said.
        isFlushed = PQflush(connection) != 1
        if isFlushed != wasFlushed {
            loop.watch(socket, for: isFlushed ? .readable : [.readable, .writable], handler: self)
        }
    }

    /// A handle for `PQcancel`, to be freed with `PQfreeCancel`; 0 if there is none.
    func makeCancelHandle() -> UInt {
        UInt(bitPattern: PQgetCancel(connection))
    }

    // MARK: Receiving

    /// The next result, owned by the caller; nil at the end of a statement's results. Throws when the connection ended.
    func nextResult(_ operation: String) async throws(PostgresError) -> OpaquePointer? {
        while true {
            guard let connection else { throw failure(operation, wasSent: true) }
            if PQisBusy(connection) == 0 && (isFlushed || isBroken) { return PQgetResult(connection) }
            if isBroken { throw failure(operation, wasSent: true) }
            await withUnsafeContinuation { continuation in
                // The operation may begin by a hop, and the answer, or the end, may have come meanwhile.
                if mustWait { waiter = continuation } else { continuation.resume() }
            }
        }
    }

    /// Whether nothing can be said before the socket is ready again.
    private var mustWait: Bool {
        guard let connection, !isBroken else { return false }
        return !isFlushed || PQisBusy(connection) != 0
    }

    func descriptorReady(_ ready: Interest) {
        guard isOpen, let connection else { return }
        if ready.contains(.writable) { flush() }
        var isAlive = true
        if ready.contains(.readable) {
            isAlive = consumeInput(connection)
            deliverNotifications()
        }
        // A callback may have ended the connection.
        guard isOpen else { return }
        let isBusy = PQisBusy(connection) != 0
        guard isAlive && PQstatus(connection) == CONNECTION_OK else { return breakDown() }
        if isFlushed && !isBusy { resumeWaiter() }
    }

    /// Takes what has arrived; false when the connection ended.
    ///
    /// OpenSSL decrypts a whole record, of up to 16 KiB, and libpq takes as much of it as its buffer has room for. No
    /// socket tells of the rest, so it is asked for here. PostgreSQL's own records fit; those of poolers, proxies and
    /// other servers need not (ruby-pg#588, supavisor#993).
    private func consumeInput(_ connection: OpaquePointer) -> Bool {
        repeat {
            guard PQconsumeInput(connection) == 1 else { return false }
        } while decryptedCount(connection) > 0
        return true
    }

    /// Bytes that OpenSSL holds decrypted; 0 without TLS.
    private func decryptedCount(_ connection: OpaquePointer) -> Int32 {
        PQsslStruct(connection, "OpenSSL").map { SSL_pending(OpaquePointer($0)) } ?? 0
    }

    /// Reports each channel once for all of its notifications that have arrived: a flood costs one call a read.
    private func deliverNotifications() {
        var channels: [String] = []
        while let notification = PQnotifies(connection) {
            let channel = String(cString: notification.pointee.relname)
            PQfreemem(notification)
            if !channels.contains(channel) { channels.append(channel) }
        }
        for channel in channels { notified?(channel) }
    }

    fileprivate func noticeArrived(_ result: OpaquePointer) {
        guard ServerError.isFatal(result) else { return }
        farewell = ServerError.read(result, operation: "connection")
    }

    private var lastMessage: String {
        let message = PQerrorMessage(connection).map { onOneLine(String(cString: $0)) } ?? ""
        return message.isEmpty ? "the connection broke" : message
    }
}

/// Called by libpq on the loop, inside the calls above. Written outside any actor: C knows no isolation.
private func receiveNotice(_ context: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {
    guard let context, let result else { return }
    Unmanaged<Wire>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.noticeArrived(result) }
}
