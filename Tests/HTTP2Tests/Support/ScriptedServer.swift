import COpenSSL
import EventLoop
import Foundation

/// How a scripted server greets in TLS.
struct ServerTLS: Sendable {
    var credential = TestCertificates.shared.good
    /// Certificates that are sent along with the server's own.
    var chain: [Credential] = []
    var offersHTTP2 = true
    /// Chooses `http/1.1` by ALPN, whatever the client offers.
    var choosesHTTP1 = false
    var speaksOnlyTLS11 = false
}

/// A server that does what a script says, one thread per connection, frame by frame. It knows HTTP/2 only as far as the
/// script needs it, so it can also break every rule.
final class ScriptedServer: Sendable {
    typealias Script = @Sendable (ServerConnection) throws -> Void

    private struct State {
        var failures: [String] = []
        var connections = 0
        var requestBytes = 0
        var requestFrames = 0
        var open: [Int32] = []
        var isStopped = false
    }

    let port: UInt16
    private let listener: Int32
    private let tls: ServerTLS
    private let script: Script
    private let state = Guarded(State())
    private let ended = DispatchSemaphore(value: 0)

    /// Listens on a free loopback port and runs `script` for each connection, which finds its number in it.
    init(_ tls: ServerTLS = ServerTLS(), _ script: @escaping Script) throws {
        self.tls = tls
        self.script = script
        (listener, port) = try Self.listen()
        Thread.detachNewThread { self.accept() }
    }

    static func listen() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, size) == 0 && Glibc.listen(descriptor, 64) == 0
                    && getsockname(descriptor, pointer, &size) == 0
            }
        }
        guard bound else { throw POSIXError(.EADDRINUSE) }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// What scripts have thrown.
    var failures: [String] { state.withLock { $0.failures } }
    /// How many connections were accepted.
    var connections: Int { state.withLock { $0.connections } }
    /// Plain bytes that clients have sent inside TLS, over all connections.
    var requestBytes: Int { state.withLock { $0.requestBytes } }

    /// Frames that carry a request or a part of one, over all connections.
    var requestFrames: Int { state.withLock { $0.requestFrames } }

    func noteRequestBytes(_ count: Int) { state.withLock { $0.requestBytes += count } }

    func noteRequestFrame() { state.withLock { $0.requestFrames += 1 } }

    /// Waits until one more connection has been served to its end; false after 30 seconds.
    func waitForEnd() -> Bool { ended.wait(timeout: .now() + 30) == .success }

    /// Ends the listener and all connections.
    func stop() {
        let open = state.withLock { state in
            state.isStopped = true
            return state.open
        }
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in open { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func accept() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { break }
            let number = state.withLock { state in
                state.connections += 1
                state.open.append(descriptor)
                return state.connections
            }
            Thread.detachNewThread { self.serve(descriptor, number) }
        }
        close(listener)
    }

    private func serve(_ descriptor: Int32, _ number: Int) {
        var limit = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var isOn: Int32 = 1
        // Small frames go out as they are written, also right before an abort.
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
        do {
            let connection = try ServerConnection(descriptor, tls, number: number, server: self)
            try script(connection)
            connection.finish()
        } catch ServerError.closed {
            // The client has gone; what that means is for the test to say.
        } catch {
            state.withLock { $0.failures.append("connection \(number): \(error)") }
        }
        state.withLock { $0.open.removeAll { $0 == descriptor } }
        close(descriptor)
        ended.signal()
    }
}

enum ServerError: Error {
    /// The client closed the connection, or it timed out.
    case closed
    case handshake
    case unexpected(String)
}
