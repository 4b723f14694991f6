import EventLoop
import Foundation
import HTTP2
import Support
import Testing

/// What a server saw of its clients.
protocol PeerWitness: Sendable {
    var port: UInt16 { get }
    /// How many connections came.
    var connections: Int { get }
    /// Bytes of the application's that came, encrypted or not; a handshake has none.
    var applicationBytes: Int { get }
    /// Frames that carry a request or a part of one.
    var requestFrames: Int { get }
    /// Waits until one more connection has been served to its end; false after 30 seconds.
    func waitForEnd() -> Bool
    func stop()
}

extension ScriptedServer: PeerWitness {
    var applicationBytes: Int { requestBytes }
}

/// A server below TLS: it sees records, and counts those that are not of a handshake.
final class RecordServer: PeerWitness {
    private struct Counts {
        var connections = 0
        var applicationBytes = 0
    }

    private final class Book: Sendable {
        let counts = Guarded(Counts())
    }

    private let listener: Listener
    private let book = Book()
    private let ended = DispatchSemaphore(value: 0)

    /// Runs `script` for each connection and closes it afterwards. Its argument reads what is there, at least one byte
    /// unless the client has gone.
    init(_ script: @escaping @Sendable (_ client: Int32, _ read: () -> Int) -> Void) throws {
        listener = try Listener { [book, ended] client in
            book.counts.withLock { $0.connections += 1 }
            var limit = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            var seen: [UInt8] = []
            script(client) {
                var buffer = [UInt8](repeating: 0, count: 16_384)
                let count = Glibc.read(client, &buffer, buffer.count)
                seen += buffer.prefix(max(0, count))
                return count
            }
            book.counts.withLock { $0.applicationBytes += Self.applicationBytes(seen) }
            close(client)
            ended.signal()
        }
    }

    var port: UInt16 { listener.port }
    var connections: Int { book.counts.withLock { $0.connections } }
    var applicationBytes: Int { book.counts.withLock { $0.applicationBytes } }
    /// None can come without a record that counts above.
    var requestFrames: Int { 0 }

    func waitForEnd() -> Bool { ended.wait(timeout: .now() + 30) == .success }

    func stop() { listener.stop() }

    /// What comes after the last record of a handshake, an alert or a change of cipher (RFC 8446 5.1).
    private static func applicationBytes(_ bytes: [UInt8]) -> Int {
        var rest = bytes[...]
        while rest.count >= 5 {
            let head = Array(rest.prefix(5))
            let size = Int(head[3]) << 8 | Int(head[4])
            guard (20...22).contains(head[0]), head[1] == 3 else { return rest.count }
            rest = rest.dropFirst(5 + size)
        }
        return 0
    }
}

/// One way in which a server can be unfit to be spoken to, and what a client has to say about it.
struct BadPeer: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let host: String
    let code: HTTP2ConnectionError.Code
    /// A part of the reason that no other bad server gets.
    let words: String
    /// Whether the handshake succeeds, so that our preface and SETTINGS, which are no request, reach the server.
    let getsPreface: Bool
    let connectTimeout: Duration
    let start: @Sendable () throws -> any PeerWitness

    init(
        _ name: String, host: String = "localhost", _ code: HTTP2ConnectionError.Code, _ words: String,
        getsPreface: Bool = false, connectTimeout: Duration = .seconds(10),
        _ start: @escaping @Sendable () throws -> any PeerWitness
    ) {
        testDescription = name
        self.host = host
        self.code = code
        self.words = words
        self.getsPreface = getsPreface
        self.connectTimeout = connectTimeout
        self.start = start
    }

    /// A server that would serve HTTP/2, if it were let, with such a certificate.
    init(
        _ name: String, host: String = "localhost", _ code: HTTP2ConnectionError.Code, _ words: String,
        certificate: CertificateTemplate, by signer: Credential? = TestCertificates.shared.authority,
        chain: [Credential] = []
    ) {
        self.init(name, host: host, code, words) {
            try Self.serving(ServerTLS(credential: certificate.issued(by: signer), chain: chain))
        }
    }

    static func serving(_ tls: ServerTLS) throws -> ScriptedServer {
        try ScriptedServer(tls) { connection in
            try connection.begin()
            while true { connection.respond(try connection.nextRequest().stream) }
        }
    }
}
