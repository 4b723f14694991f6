import EventLoop
import Foundation

/// A proxy that does with a CONNECT what a script says, one thread per connection.
final class ScriptedProxy: Sendable {
    typealias Script = @Sendable (ProxyConnection) throws -> Void

    private struct State {
        var requests: [String] = []
        var open: [Int32] = []
        var bytesBehindRequests = 0
        var keepsRequests = false
        var keepsAnswers = false
        var keptOfClients = 0
    }

    let port: UInt16
    private let listener: Int32
    private let script: Script
    private let state = Guarded(State())

    /// Listens on a free loopback port and runs `script` once the head of a request has come.
    init(_ script: @escaping Script) throws {
        self.script = script
        (listener, port) = try ScriptedServer.listen()
        Thread.detachNewThread { self.accept() }
    }

    /// A proxy that opens each tunnel, to a loopback port whatever the name.
    static func honest() throws -> ScriptedProxy {
        try ScriptedProxy { connection in
            connection.write("HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
            try connection.tunnel(to: connection.port)
        }
    }

    /// The heads of all requests, in order.
    var requests: [String] { state.withLock { $0.requests } }

    /// Bytes that clients have sent after their request, where the script has read any.
    var bytesBehindRequests: Int { state.withLock { $0.bytesBehindRequests } }

    /// Passes nothing on any more that comes from clients, and leaves all connections open.
    func keepRequests() { state.withLock { $0.keepsRequests = true } }

    /// Passes nothing on any more, in either direction, and leaves all connections open.
    func fallSilent() { state.withLock { ($0.keepsRequests, $0.keepsAnswers) = (true, true) } }

    /// Whether these bytes of a client are kept.
    func keeps(ofClient count: Int) -> Bool {
        state.withLock { state in
            if state.keepsRequests { state.keptOfClients += count }
            return state.keepsRequests
        }
    }

    /// Whether bytes of a server are kept.
    var keepsAnswers: Bool { state.withLock { $0.keepsAnswers } }

    /// Waits until that many bytes of clients have come and were kept; 20 seconds at most.
    func waitUntilKept(_ count: Int) {
        for _ in 0..<4000 where state.withLock({ $0.keptOfClients < count }) { usleep(5000) }
    }

    func noteRequest(_ head: String) { state.withLock { $0.requests.append(head) } }

    func noteBytes(_ count: Int) { state.withLock { $0.bytesBehindRequests += count } }

    func noteOpen(_ descriptor: Int32) { state.withLock { $0.open.append(descriptor) } }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in state.withLock({ $0.open }) { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func accept() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { break }
            noteOpen(dup(descriptor))
            Thread.detachNewThread {
                let connection = ProxyConnection(descriptor, self)
                if let head = connection.readHead() {
                    self.noteRequest(head)
                    try? self.script(connection)
                }
                // `stop` knows the connection by another descriptor, which alone would keep it open.
                shutdown(descriptor, Int32(SHUT_RDWR))
                close(descriptor)
            }
        }
        close(listener)
    }
}

/// The proxy's end of one connection; belongs to the thread of its script.
final class ProxyConnection {
    private let descriptor: Int32
    private let proxy: ScriptedProxy
    private(set) var head = ""

    init(_ descriptor: Int32, _ proxy: ScriptedProxy) {
        self.descriptor = descriptor
        self.proxy = proxy
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// The port that the client asked for.
    var port: UInt16 {
        let target = head.split(separator: " ").dropFirst().first ?? ""
        return UInt16(target.split(separator: ":").last ?? "") ?? 0
    }

    func readHead() -> String? {
        var byte: UInt8 = 0
        while !head.hasSuffix("\r\n\r\n") {
            guard read(descriptor, &byte, 1) == 1 else { return nil }
            head.unicodeScalars.append(Unicode.Scalar(byte))
        }
        return head
    }

    func write(_ text: String) { write(Array(text.utf8)) }

    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// No more will be written; reading goes on.
    func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads until the client closes, and counts the bytes.
    func drain() {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return }
            proxy.noteBytes(count)
        }
    }

    /// Reads what is there, at least one byte unless the client has gone.
    func readSome() -> Int {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        return read(descriptor, &buffer, buffer.count)
    }

    /// Lets the end of the connection be a reset by TCP.
    func resetOnClose() {
        var noLinger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &noLinger, socklen_t(MemoryLayout<linger>.size))
    }

    /// Moves bytes between the client and a loopback port until both have closed, `downMax` to the client at most.
    func tunnel(to port: UInt16, downMax: Int = .max) throws {
        let other = try Self.connect(to: port)
        proxy.noteOpen(dup(other))
        let (client, proxy) = (descriptor, proxy)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            Self.copy(from: other, to: client, atMost: downMax) { _ in proxy.keepsAnswers }
            if downMax < .max { shutdown(client, Int32(SHUT_RDWR)) }
            done.signal()
        }
        Self.copy(from: client, to: other) { proxy.keeps(ofClient: $0) }
        done.wait()
        close(other)
    }

    private static func copy(
        from source: Int32, to target: Int32, atMost limit: Int = .max, isKept: (_ count: Int) -> Bool
    ) {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var rest = limit
        while rest > 0 {
            let count = read(source, &buffer, min(rest, buffer.count))
            guard count > 0 else { break }
            rest -= count
            if isKept(count) { continue }
            guard send(target, buffer, count, Int32(MSG_NOSIGNAL)) == count else { break }
        }
        shutdown(target, Int32(SHUT_WR))
    }

    private static func connect(to port: UInt16) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            close(descriptor)
            throw ServerError.unexpected("port \(port) does not answer")
        }
        return descriptor
    }
}
