import CNGHTTP2
import COpenSSL
import EventLoop
import Glibc

/// One client's connection: TLS by OpenSSL, HTTP/2 by an nghttp2 server session, all on the loop.
///
/// What a turn of the loop produced is written at its end in one go. Reading pauses while the client does not take its
/// answers; flow control and the stream limit bound what can arrive in one turn.
final class ServerConnection: ReadinessHandler, EndOfTurnHandler {
    /// Counts connections of the server from 1.
    let number: Int
    private let descriptor: Int32
    private let ssl: OpaquePointer
    private let loop: EventLoop
    private weak var handler: (any RequestHandler)?
    private let settings: ServerSettings
    private(set) var session: OpaquePointer?

    private var live: [ServerStream] = []
    private var spare: [ServerStream] = []
    private var incoming = [UInt8](repeating: 0, count: 32 * 1024)
    private var outgoing: [UInt8] = []
    private var outgoingSent = 0
    /// Whole frames that go out behind those of nghttp2.
    private var extraFrames: [UInt8] = []
    private var interest: Interest = .readable
    private var isFlushQueued = false
    private var dropsNow = false
    private var isClosed = false
    /// While set nothing is read or written, as where packets are dropped; TCP itself goes on.
    var isFrozen = false {
        didSet {
            guard isFrozen != oldValue, !isClosed else { return }
            if isFrozen { return loop.unwatch(descriptor) }
            loop.watch(descriptor, for: interest, handler: self)
            queueFlush()
        }
    }
    private var handshakeTimer: TimerID?

    /// A handshake that takes longer is given up.
    private static let handshakeLimit = Duration.seconds(10)
    /// Bytes gathered for one write.
    private static let writeSize = 64 * 1024

    /// Takes over a connected, non-blocking descriptor and its TLS session. Loop only.
    init(
        number: Int, descriptor: Int32, ssl: OpaquePointer, settings: ServerSettings, on loop: EventLoop,
        handler: any RequestHandler
    ) {
        self.number = number
        self.descriptor = descriptor
        self.ssl = ssl
        self.settings = settings
        self.loop = loop
        self.handler = handler
    }

    /// Starts the handshake.
    func start() {
        if !isFrozen { loop.watch(descriptor, for: .readable, handler: self) }
        limitHandshake()
    }

    private func limitHandshake() {
        handshakeTimer = loop.arm(at: .now + Self.handshakeLimit) { [weak self] in
            guard let self else { return }
            if self.isFrozen { self.limitHandshake() } else { self.close() }
        }
    }

    /// Ends the connection at once, without a word.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        if let handshakeTimer { loop.cancel(handshakeTimer) }
        if !isFrozen { loop.unwatch(descriptor) }
        if let session { nghttp2_session_del(session) }
        session = nil
        live.removeAll()
        SSL_free(ssl)
        Glibc.close(descriptor)
        handler?.connectionClosed(self)
    }

    /// Ends the connection when the bytes in hand have been read: to be called while a request is handled.
    func drop() {
        dropsNow = true
        queueFlush()
    }

    // MARK: Answers

    /// Sends the answer put together in `stream`.
    func answer(_ stream: ServerStream) {
        guard let session, !stream.isAnswered else { return }
        stream.isAnswered = true
        submitAnswer(stream, session)
        queueFlush()
    }

    /// Ends `stream` with an error code (RFC 9113 7), and with a second one where it is given.
    func reset(_ stream: ServerStream, code: UInt32, andAgain second: UInt32? = nil) {
        guard let session, !stream.isAnswered else { return }
        stream.isAnswered = true
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.number, code)
        if let second { extraFrames += Self.resetFrame(stream.number, second) }
        queueFlush()
    }

    /// A RST_STREAM frame byte by byte (RFC 9113 6.4): nghttp2 sends none for a stream that is closed already.
    private static func resetFrame(_ stream: Int32, _ code: UInt32) -> [UInt8] {
        var frame: [UInt8] = [0, 0, 4, UInt8(NGHTTP2_RST_STREAM.rawValue), 0]
        for value in [UInt32(bitPattern: stream), code] {
            frame += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
        }
        return frame
    }

    /// Streams whose request is arriving or not answered in full.
    var openStreams: Int { live.count }

    /// The last stream that a request came on.
    var lastStream: Int32 {
        session.map { nghttp2_session_get_last_proc_stream_id($0) } ?? 0
    }

    /// Announces that no stream above `lastStream` was looked at and that no new one will be.
    func goAway(lastStream: Int32, code: UInt32, debugData: [UInt8]) {
        guard let session else { return }
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), lastStream, code, debugData, debugData.count)
        queueFlush()
    }

    /// Tells the client how many streams it may have open from now on.
    func setStreamLimit(_ limit: UInt32) {
        guard let session else { return }
        var entry = nghttp2_settings_entry(
            settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: limit)
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &entry, 1)
        queueFlush()
    }

    /// Whether `stream` is still the open stream that it was when its request arrived.
    func isOpen(_ stream: ServerStream, number: Int32) -> Bool {
        !isClosed && stream.number == number && stream.slot < live.count && live[stream.slot] === stream
    }

    // MARK: Streams, as nghttp2 reports them

    func openStream(_ number: Int32) -> ServerStream {
        let stream = spare.popLast() ?? ServerStream()
        stream.begin(number)
        stream.slot = live.count
        live.append(stream)
        return stream
    }

    func closeStream(_ stream: ServerStream) {
        let slot = stream.slot
        guard slot < live.count, live[slot] === stream else { return }
        // First kept, then let go: a callback of nghttp2 lends the stream without owning it.
        spare.append(stream)
        live.swapAt(slot, live.count - 1)
        live[slot].slot = slot
        live.removeLast()
    }

    func requestArrived(_ stream: ServerStream) {
        guard !stream.isAnswered else { return }
        handler?.requestArrived(stream, on: self)
    }

    func clientBrokeProtocol() {
        handler?.clientBrokeProtocol(on: self)
    }

    // MARK: Socket

    func descriptorReady(_ ready: Interest) {
        if session == nil {
            guard handshake() else { return }
        } else if ready.contains(.writable) {
            queueFlush()
        }
        if interest.contains(.readable) { readAll() }
    }

    func turnEnded() {
        isFlushQueued = false
        if dropsNow { close() }
        guard !isClosed, !isFrozen else { return }
        handler?.connectionWillSend()
        flush()
    }

    private func queueFlush() {
        guard !isFlushQueued, !isClosed else { return }
        isFlushQueued = true
        loop.atEndOfTurn(self)
    }

    private func handshake() -> Bool {
        let result = SSL_do_handshake(ssl)
        if result == 1 { return begin() }
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: wait(for: .readable)
        case SSL_ERROR_WANT_WRITE: wait(for: .writable)
        default:
            ERR_clear_error()
            close()
        }
        return false
    }

    private func begin() -> Bool {
        if let handshakeTimer { loop.cancel(handshakeTimer) }
        handshakeTimer = nil
        wait(for: .readable)
        guard let session = ServerSession.make(for: self, settings) else {
            close()
            return false
        }
        self.session = session
        handler?.connectionOpened(self)
        queueFlush()
        return true
    }

    private func readAll() {
        while let session, !dropsNow {
            let count = SSL_read(ssl, &incoming, Int32(incoming.count))
            guard count > 0 else {
                let error = SSL_get_error(ssl, count)
                if error == SSL_ERROR_WANT_READ { return }
                ERR_clear_error()
                return close()
            }
            let taken = nghttp2_session_mem_recv(session, incoming, Int(count))
            // nghttp2 has queued a GOAWAY for most faults of the client; the few others are answered by silence.
            if taken < 0 { return drop() }
            queueFlush()
        }
    }

    private func flush() {
        while true {
            gather()
            guard outgoingSent < outgoing.count else { break }
            guard write() else { return }
        }
        wait(for: .readable)
        if let session, nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 { close() }
    }

    private func gather() {
        if outgoingSent == outgoing.count {
            outgoing.removeAll(keepingCapacity: true)
            outgoingSent = 0
        }
        guard let session else { return }
        while outgoing.count < Self.writeSize {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            guard count > 0, let data else {
                outgoing += extraFrames
                extraFrames.removeAll(keepingCapacity: true)
                return
            }
            outgoing.append(contentsOf: UnsafeBufferPointer(start: data, count: count))
        }
    }

    /// Writes what was gathered; false when the rest has to wait or the connection is gone.
    private func write() -> Bool {
        let count = outgoing.withUnsafeBufferPointer { bytes in
            SSL_write(ssl, bytes.baseAddress.map { $0 + outgoingSent }, Int32(bytes.count - outgoingSent))
        }
        if count > 0 {
            outgoingSent += Int(count)
            return true
        }
        if SSL_get_error(ssl, count) == SSL_ERROR_WANT_WRITE {
            wait(for: .writable)
        } else {
            ERR_clear_error()
            close()
        }
        return false
    }

    private func wait(for wanted: Interest) {
        guard wanted != interest, !isClosed else { return }
        interest = wanted
        if isFrozen { return }
        loop.watch(descriptor, for: wanted, handler: self)
    }
}
