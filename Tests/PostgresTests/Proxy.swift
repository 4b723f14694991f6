import Foundation
import Glibc
import Synchronization
import Testing

/// A listener on a free port of the loopback that hands each accepted connection to `serve`, on a thread of its own.
final class Listener: Sendable {
    let port: UInt16
    private let descriptor: Int32

    init(_ serve: @escaping @Sendable (_ client: Int32) -> Void) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        try #require(isBound, "no port of the loopback is free: errno \(errno)")
        port = UInt16(bigEndian: address.sin_port)
        self.descriptor = descriptor
        Thread.detachNewThread {
            while true {
                let client = accept(descriptor, nil, nil)
                if client < 0 { break }
                Thread.detachNewThread { serve(client) }
            }
            // Closed by the thread that accepts, which must not do so on a number that has come back for another.
            close(descriptor)
        }
    }

    /// Refuses connections from now on.
    func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }
}

/// Stands between a client and a server's socket, and can stop passing bytes on without closing anything.
final class Proxy: Sendable {
    /// Whether bytes are held back.
    private final class Frozen: Sendable {
        let value = Atomic(false)
    }

    private let frozen = Frozen()
    private let listener: Listener

    var port: UInt16 { listener.port }

    /// Forwards to the Unix socket at `path`.
    init(to path: String) throws {
        let frozen = frozen
        listener = try Listener { client in
            let server = Self.connect(to: path)
            Thread.detachNewThread { Self.pump(from: server, to: client, frozen) }
            Self.pump(from: client, to: server, frozen)
        }
    }

    func freeze() {
        frozen.value.store(true, ordering: .sequentiallyConsistent)
    }

    func thaw() {
        frozen.value.store(false, ordering: .sequentiallyConsistent)
    }

    func stop() {
        listener.stop()
    }

    private static func connect(to path: String) -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, length) }
        }
        return descriptor
    }

    private static func pump(from source: Int32, to target: Int32, _ frozen: Frozen) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(source, &buffer, buffer.count)
            while frozen.value.load(ordering: .sequentiallyConsistent) { usleep(1000) }
            if count <= 0 || send(target, buffer, count, Int32(MSG_NOSIGNAL)) != count { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}
