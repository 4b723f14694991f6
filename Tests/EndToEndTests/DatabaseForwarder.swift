import Foundation
import Glibc
import Testing

/// Stands on a port of the loopback and forwards to a server's Unix socket, from the moment it is opened on: before,
/// connections are refused. Can behave like a proxy that pools transactions: it passes no notification on, and a
/// statement that is prepared by name, which the next session would not know, ends the connection.
final class DatabaseForwarder: Sendable {
    let port: UInt16
    private let listener: Int32
    private let path: String
    private let poolsTransactions: Bool

    /// Takes a port; forwards to the socket of libpq's `host=… port=…` in `connectionString` once it is open.
    init(to connectionString: String, poolingTransactions: Bool = false) throws {
        let parts = connectionString.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1) }
        let values = Dictionary(parts.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) }) { first, _ in
            first
        }
        path = "\(values["host"] ?? "")/.s.PGSQL.\(values["port"] ?? "5432")"
        poolsTransactions = poolingTransactions
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound, "no port of the loopback is free")
        port = UInt16(bigEndian: address.sin_port)
    }

    /// Lets connections be made and does nothing with them.
    func listenOnly() {
        listen(listener, 16)
    }

    /// Whether somebody has connected whom nobody has accepted.
    var hasWaitingClient: Bool {
        var event = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        return poll(&event, 1, 0) > 0
    }

    /// Accepts connections from now on, each on threads of its own.
    func open() {
        listen(listener, 16)
        Thread.detachNewThread { [listener, path, poolsTransactions] in
            while true {
                let client = accept(listener, nil, nil)
                if client < 0 { break }
                let server = Self.connect(to: path)
                let asked: Judge? = poolsTransactions ? Self.judgeQuestion : nil
                let answered: Judge? = poolsTransactions ? Self.judgeAnswer : nil
                Thread.detachNewThread { Self.pump(from: client, to: server, startsUntyped: true, asked) }
                Thread.detachNewThread { Self.pump(from: server, to: client, startsUntyped: false, answered) }
            }
            close(listener)
        }
    }

    /// Refuses connections from now on.
    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
    }

    private static func connect(to path: String) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        return descriptor
    }

    private enum Verdict {
        case pass, drop, end
    }

    /// What becomes of a message, given its type and what follows its length.
    private typealias Judge = @Sendable (_ type: UInt8, _ content: ArraySlice<UInt8>) -> Verdict

    /// A Parse (`P`) begins with the name of what it prepares, which is empty for the next statement alone.
    private static let judgeQuestion: Judge = { type, content in
        type == UInt8(ascii: "P") && content.first != 0 ? .end : .pass
    }

    /// A NotificationResponse (`A`) is left out.
    private static let judgeAnswer: Judge = { type, _ in type == UInt8(ascii: "A") ? .drop : .pass }

    /// The streams are in the clear: a type, a length that counts itself, and the rest. The client's first message has
    /// no type.
    private static func pump(from source: Int32, to target: Int32, startsUntyped: Bool, _ judge: Judge?) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var waiting: [UInt8] = []
        var isUntyped = startsUntyped
        reading: while true {
            let count = read(source, &buffer, buffer.count)
            if count <= 0 { break }
            waiting += buffer[..<count]
            var passed: [UInt8] = []
            if let judge {
                while waiting.count >= 5 {
                    let start = isUntyped ? 0 : 1
                    let length = start + waiting[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
                    guard waiting.count >= length else { break }
                    let verdict = isUntyped ? .pass : judge(waiting[0], waiting[5..<length])
                    if verdict == .end { break reading }
                    if verdict == .pass { passed += waiting[..<length] }
                    waiting.removeFirst(length)
                    isUntyped = false
                }
            } else {
                swap(&passed, &waiting)
            }
            if !passed.isEmpty, send(target, passed, passed.count, Int32(MSG_NOSIGNAL)) != passed.count { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}
