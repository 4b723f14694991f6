import CNGHTTP2
import COpenSSL
import Foundation

/// A frame as it is on the wire.
struct Frame {
    var type: UInt8
    var flags: UInt8 = 0
    var stream: Int32 = 0
    var payload: [UInt8] = []

    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let reset: UInt8 = 3
    static let settings: UInt8 = 4
    static let ping: UInt8 = 6
    static let goAway: UInt8 = 7
    static let windowUpdate: UInt8 = 8
    static let continuation: UInt8 = 9

    static let endStream: UInt8 = 1
    static let endHeaders: UInt8 = 4
}

/// A whole request.
struct ReceivedRequest {
    var stream: Int32
    var headers: [(name: String, value: String)]
    var body: [UInt8]

    subscript(name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// The server's end of one connection; belongs to the thread of its script.
final class ServerConnection {
    /// Counted from 1.
    let number: Int
    /// Whether PINGs are answered and DATA is acknowledged with WINDOW_UPDATE.
    var answersPings = true
    var answersSettings = true
    var replenishes = true
    /// Streams with a request that were not answered or reset, and the most there ever were.
    private(set) var open: Set<Int32> = []
    private(set) var mostOpen = 0
    private(set) var pings = 0
    /// What the client's windows still take: the connection's under 0, and each stream's.
    private var windows: [Int32: Int] = [0: 65_535]
    private var pongs: Set<UInt8> = []
    private var syncs: UInt8 = 0
    private(set) var resets: [(stream: Int32, code: UInt32)] = []

    private let ssl: OpaquePointer
    private let context: OpaquePointer
    private let server: ScriptedServer
    private var inflater: OpaquePointer?
    private var partial: [Int32: ReceivedRequest] = [:]
    private var complete: [ReceivedRequest] = []

    init(_ descriptor: Int32, _ tls: ServerTLS, number: Int, server: ScriptedServer) throws {
        self.number = number
        self.server = server
        guard let context = SSL_CTX_new(TLS_server_method()), let ssl = SSL_new(Self.prepare(context, tls)) else {
            throw ServerError.handshake
        }
        self.context = context
        self.ssl = ssl
        nghttp2_hd_inflate_new(&inflater)
        SSL_set_fd(ssl, descriptor)
        guard SSL_accept(ssl) == 1 else { throw ServerError.closed }
    }

    deinit {
        nghttp2_hd_inflate_del(inflater)
        SSL_free(ssl)
        SSL_CTX_free(context)
    }

    private static func prepare(_ context: OpaquePointer, _ tls: ServerTLS) -> OpaquePointer {
        // Weak keys and digests are for the client to refuse.
        SSL_CTX_set_security_level(context, 0)
        SSL_CTX_use_certificate(context, tls.credential.certificate)
        SSL_CTX_use_PrivateKey(context, tls.credential.key)
        for link in tls.chain {
            X509_up_ref(link.certificate)
            SSL_CTX_ctrl(context, SSL_CTRL_EXTRA_CHAIN_CERT, 0, link.certificate.map(UnsafeMutableRawPointer.init))
        }
        if tls.speaksOnlyTLS11 {
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_VERSION), nil)
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_1_VERSION), nil)
        }
        if tls.choosesHTTP1 {
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, chosen, length, _, _, _ in
                    let name: StaticString = "http/1.1"
                    chosen?.pointee = name.utf8Start
                    length?.pointee = UInt8(name.utf8CodeUnitCount)
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        } else if tls.offersHTTP2 {
            SSL_CTX_set_alpn_select_cb(
                context,
                { _, chosen, length, offered, count, _ in
                    guard let offered, count == 3, offered[0] == 2 else { return SSL_TLSEXT_ERR_NOACK }
                    chosen?.pointee = offered + 1
                    length?.pointee = 2
                    return SSL_TLSEXT_ERR_OK
                }, nil)
        }
        return context
    }

    // MARK: Reading

    /// Reads `count` plain bytes.
    func read(_ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let result = bytes.withUnsafeMutableBytes {
                SSL_read(ssl, $0.baseAddress?.advanced(by: done), Int32(count - done))
            }
            guard result > 0 else { throw ServerError.closed }
            done += Int(result)
            server.noteRequestBytes(Int(result))
        }
        return bytes
    }

    /// Reads the client's preface and sends `settings`; by default 100 streams.
    func begin(_ settings: [(UInt16, UInt32)] = [(3, 100)]) throws {
        try expectPreface()
        sendSettings(settings)
    }

    func expectPreface() throws {
        let preface = try read(24)
        guard preface == Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) else { throw ServerError.unexpected("preface") }
    }

    /// Reads a frame and does what every peer does with it.
    @discardableResult
    func nextFrame() throws -> Frame {
        let head = try read(9)
        let size = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
        let stream = head[5...8].reduce(0) { $0 << 8 | Int32($1) }
        let frame = Frame(type: head[3], flags: head[4], stream: stream, payload: try read(size))
        if [Frame.headers, Frame.data, Frame.continuation].contains(frame.type) { server.noteRequestFrame() }
        switch frame.type {
        case Frame.settings where frame.flags & 1 == 0:
            if answersSettings { send(Frame(type: Frame.settings, flags: 1)) }
        case Frame.ping where frame.flags & 1 == 0: pinged(frame)
        case Frame.ping: pongs.insert(frame.payload[0])
        case Frame.windowUpdate:
            windows[stream, default: 65_535] += Int(frame.payload.reduce(0) { $0 << 8 | UInt32($1) })
        case Frame.headers: try headersCame(frame)
        case Frame.data: dataCame(frame)
        case Frame.reset:
            open.remove(stream)
            resets.append((stream, frame.payload.reduce(0) { $0 << 8 | UInt32($1) }))
        default: break
        }
        return frame
    }

    private func pinged(_ frame: Frame) {
        pings += 1
        if answersPings { send(Frame(type: Frame.ping, flags: 1, payload: frame.payload)) }
    }

    private func headersCame(_ frame: Frame) throws {
        guard frame.flags & Frame.endHeaders != 0 else { throw ServerError.unexpected("CONTINUATION") }
        open.insert(frame.stream)
        mostOpen = max(mostOpen, open.count)
        let request = ReceivedRequest(stream: frame.stream, headers: try inflate(frame.payload), body: [])
        if frame.flags & Frame.endStream != 0 { complete.append(request) } else { partial[frame.stream] = request }
    }

    private func dataCame(_ frame: Frame) {
        partial[frame.stream]?.body += frame.payload
        if replenishes, !frame.payload.isEmpty { sendWindow(0, frame.payload.count) }
        if frame.flags & Frame.endStream != 0, let request = partial.removeValue(forKey: frame.stream) {
            complete.append(request)
        }
    }

    private func inflate(_ block: [UInt8]) throws -> [(name: String, value: String)] {
        var headers: [(name: String, value: String)] = []
        var rest = block[...]
        while true {
            var field = nghttp2_nv()
            var flags: Int32 = 0
            let used = rest.withUnsafeBufferPointer {
                nghttp2_hd_inflate_hd2(inflater, &field, &flags, $0.baseAddress, $0.count, 1)
            }
            guard used >= 0 else { throw ServerError.unexpected("HPACK") }
            rest = rest.dropFirst(used)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                headers.append((text(field.name, field.namelen), text(field.value, field.valuelen)))
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 { break }
        }
        nghttp2_hd_inflate_end_headers(inflater)
        return headers
    }

    private func text(_ start: UnsafeMutablePointer<UInt8>?, _ count: Int) -> String {
        String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Waits for a whole request.
    func nextRequest() throws -> ReceivedRequest {
        while complete.isEmpty { try nextFrame() }
        return complete.removeFirst()
    }

    /// Waits for `count` whole requests.
    func requests(_ count: Int) throws -> [ReceivedRequest] {
        try (0..<count).map { _ in try nextRequest() }
    }

    /// Waits until the client has done everything that what it was sent before can lead to. Twice, because an answer to
    /// a PING goes out before the requests of its turn.
    func synchronize() throws {
        for _ in 0..<2 {
            syncs += 1
            send(Frame(type: Frame.ping, payload: [syncs, 0, 0, 0, 0, 0, 0, 0]))
            while !pongs.contains(syncs) { try nextFrame() }
        }
    }

    /// Requests that arrived and were not asked for yet.
    var unread: Int { complete.count }

    /// Reads until the client closes.
    func drain() {
        while (try? nextFrame()) != nil {}
    }

    // MARK: Writing

    /// Sends plain bytes as they are.
    func sendRaw(_ bytes: [UInt8]) {
        var done = 0
        while done < bytes.count {
            let result = bytes.withUnsafeBytes {
                SSL_write(ssl, $0.baseAddress?.advanced(by: done), Int32(bytes.count - done))
            }
            guard result > 0 else { return }
            done += Int(result)
        }
    }

    func send(_ frames: Frame...) {
        sendRaw(frames.flatMap(encode))
    }

    private func encode(_ frame: Frame) -> [UInt8] {
        let size = frame.payload.count
        let head = [UInt8(size >> 16 & 255), UInt8(size >> 8 & 255), UInt8(size & 255), frame.type, frame.flags]
        return head + bytes(UInt32(frame.stream)) + frame.payload
    }

    private func bytes(_ number: UInt32) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(number >> $0 & 255) }
    }

    func sendSettings(_ settings: [(UInt16, UInt32)]) {
        let payload = settings.flatMap { [UInt8($0.0 >> 8), UInt8($0.0 & 255)] + bytes($0.1) }
        send(Frame(type: Frame.settings, payload: payload))
    }

    func sendWindow(_ stream: Int32, _ count: Int) {
        send(Frame(type: Frame.windowUpdate, stream: stream, payload: bytes(UInt32(count))))
    }

    func headers(_ stream: Int32, _ fields: [(String, String)], end: Bool) -> Frame {
        let flags = Frame.endHeaders | (end ? Frame.endStream : 0)
        return Frame(type: Frame.headers, flags: flags, stream: stream, payload: Self.block(fields))
    }

    /// A header block of literals, without indexing and without Huffman codes.
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        func string(_ text: String) -> [UInt8] {
            let bytes = Array(text.utf8)
            guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
            var rest = bytes.count - 127
            var size: [UInt8] = [127]
            while rest >= 128 {
                size.append(UInt8(rest & 127) | 128)
                rest >>= 7
            }
            return size + [UInt8(rest)] + bytes
        }
        return fields.flatMap { [0] + string($0.0) + string($0.1) }
    }

    func respond(_ stream: Int32, _ status: Int = 200, _ fields: [(String, String)] = [], body: [UInt8] = []) {
        open.remove(stream)
        var frames = encode(headers(stream, [(":status", "\(status)")] + fields, end: body.isEmpty))
        if !body.isEmpty {
            frames += encode(Frame(type: Frame.data, flags: Frame.endStream, stream: stream, payload: body))
        }
        sendRaw(frames)
    }

    /// Sends `count` bytes of body as the client's windows allow.
    func sendBody(_ stream: Int32, count: Int, end: Bool = true) throws {
        var left = count
        while left > 0 {
            let room = min(windows[0] ?? 0, windows[stream, default: 65_535], 16_384, left)
            guard room > 0 else {
                try nextFrame()
                continue
            }
            left -= room
            windows[0, default: 0] -= room
            windows[stream, default: 65_535] -= room
            let flags = left == 0 && end ? Frame.endStream : 0
            let payload = [UInt8](repeating: UInt8(ascii: "b"), count: room)
            send(Frame(type: Frame.data, flags: flags, stream: stream, payload: payload))
        }
        if end { open.remove(stream) }
    }

    func reset(_ stream: Int32, _ code: UInt32) {
        open.remove(stream)
        send(Frame(type: Frame.reset, stream: stream, payload: bytes(code)))
    }

    func goAway(last: Int32, code: UInt32 = 0, debug: String = "") {
        send(Frame(type: Frame.goAway, payload: bytes(UInt32(last)) + bytes(code) + Array(debug.utf8)))
    }

    /// Ends the connection at once by a TCP reset: what was sent before arrives, and nothing is taken any more. The
    /// script must throw afterwards.
    func abort() -> ServerError {
        let descriptor = SSL_get_fd(ssl)
        var noLinger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &noLinger, socklen_t(MemoryLayout<linger>.size))
        // The number stays taken until the listener closes it.
        let nothing = Glibc.open("/dev/null", O_RDWR | O_CLOEXEC)
        dup2(nothing, descriptor)
        close(nothing)
        return .closed
    }

    /// Waits until bytes have come that nobody has read, and leaves them so.
    func waitForUnread() {
        var place = pollfd(fd: SSL_get_fd(ssl), events: Int16(POLLIN), revents: 0)
        _ = poll(&place, 1, 20_000)
    }

    /// Sends bytes that TLS knows nothing of.
    func sendBelowTLS(_ bytes: [UInt8]) {
        _ = Glibc.send(SSL_get_fd(ssl), bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Ends the connection without a word of TLS.
    func hangUp() {
        SSL_set_quiet_shutdown(ssl, 1)
    }

    /// Ends the connection in order.
    func finish() {
        SSL_shutdown(ssl)
    }
}
