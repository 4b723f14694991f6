import Foundation
import Glibc
import Testing

/// Stands on a port of the loopback and forwards to a server's Unix socket, from the moment it is opened on: before,
/// connections are refused. Can behave like a proxy that pools transactions, which passes no notification on.
final class DatabaseForwarder: Sendable {
    let port: UInt16
    private let listener: Int32
    private let path: String
    private let dropsNotifications: Bool

    /// Takes a port; forwards to the socket of libpq's `host=… port=…` in `connectionString` once it is open.
    init(to connectionString: String, droppingNotifications: Bool = false) throws {
        let parts = connectionString.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1) }
        let values = Dictionary(parts.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) }) { first, _ in
            first
        }
        path = "\(values["host"] ?? "")/.s.PGSQL.\(values["port"] ?? "5432")"
        dropsNotifications = droppingNotifications
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
        Thread.detachNewThread { [listener, path, dropsNotifications] in
            while true {
                let client = accept(listener, nil, nil)
                if client < 0 { break }
                let server = Self.connect(to: path)
                Thread.detachNewThread { Self.pump(from: client, to: server) }
                Thread.detachNewThread { Self.pump(from: server, to: client, withoutNotifications: dropsNotifications) }
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

    /// `withoutNotifications`: leaves out messages of type `A` (NotificationResponse). The stream is the server's, in
    /// the clear: a type, a length that counts itself, and the rest.
    private static func pump(from source: Int32, to target: Int32, withoutNotifications: Bool = false) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var waiting: [UInt8] = []
        while true {
            let count = read(source, &buffer, buffer.count)
            if count <= 0 { break }
            waiting += buffer[..<count]
            var passed: [UInt8] = []
            if withoutNotifications {
                while waiting.count >= 5 {
                    let length = 1 + waiting[1...4].reduce(0) { $0 << 8 | Int($1) }
                    guard waiting.count >= length else { break }
                    if waiting[0] != UInt8(ascii: "A") { passed += waiting[..<length] }
                    waiting.removeFirst(length)
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
