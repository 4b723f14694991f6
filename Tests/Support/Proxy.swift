import Foundation
import Glibc
import Synchronization

/// A listener on a free port of the loopback that hands each accepted connection to `serve`, on a thread of its own.
package final class Listener: Sendable {
    /// Its port.
    package let port: UInt16
    private let descriptor: Int32

    /// Listens until `stop()`.
    package init(_ serve: @escaping @Sendable (_ client: Int32) -> Void) throws {
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
        guard isBound else { throw TestSetupError("no port of the loopback is free: errno \(errno)") }
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
    package func stop() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }
}

/// Stands between a client and a server's socket, and can stop passing bytes on without closing anything.
package final class Proxy: Sendable {
    /// Whether bytes are held back.
    private final class Frozen: Sendable {
        let value = Atomic(false)
    }

    /// A statement whose answer is to be lost, as its name appears in the protocol, and how often that has happened.
    private final class Trap: Sendable {
        let name = Mutex<[UInt8]>([])
        let sprung = Atomic(0)

        /// Whether these bytes of a client ask for the statement; the trap is then empty.
        func catches(_ bytes: ArraySlice<UInt8>) -> Bool {
            name.withLock { name in
                guard !name.isEmpty, bytes.firstRange(of: name) != nil else { return false }
                name = []
                sprung.add(1, ordering: .sequentiallyConsistent)
                return true
            }
        }
    }

    private let frozen = Frozen()
    private let trap = Trap()
    private let listener: Listener

    /// The port that clients connect to.
    package var port: UInt16 { listener.port }

    /// Forwards to the Unix socket at `path`.
    package init(to path: String) throws {
        let (frozen, trap) = (frozen, trap)
        listener = try Listener { client in
            let server = Self.connect(to: path)
            let muted = Frozen()
            Thread.detachNewThread { Self.pump(from: server, to: client, frozen, muted: muted) }
            Self.pump(from: client, to: server, frozen, muted: muted, trap)
        }
    }

    /// The next time a client asks for this prepared statement, the server gets it, and the client loses its connection
    /// with the first byte of the answer.
    package func loseAnswer(of statement: String) {
        // In the protocol a name ends with a zero.
        trap.name.withLock { $0 = Array(statement.utf8) + [0] }
    }

    /// Answers that were lost.
    package var lostAnswers: Int { trap.sprung.load(ordering: .sequentiallyConsistent) }

    /// Holds all bytes back.
    package func freeze() {
        frozen.value.store(true, ordering: .sequentiallyConsistent)
    }

    /// Lets them through again.
    package func thaw() {
        frozen.value.store(false, ordering: .sequentiallyConsistent)
    }

    /// Refuses connections from now on; those that stand go on.
    package func stop() {
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

    private static func pump(
        from source: Int32, to target: Int32, _ frozen: Frozen, muted: Frozen, _ trap: Trap? = nil
    ) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(source, &buffer, buffer.count)
            while frozen.value.load(ordering: .sequentiallyConsistent) { usleep(1000) }
            if count <= 0 { break }
            if trap == nil && muted.value.load(ordering: .sequentiallyConsistent) { break }
            if trap?.catches(buffer[..<count]) == true { muted.value.store(true, ordering: .sequentiallyConsistent) }
            if send(target, buffer, count, Int32(MSG_NOSIGNAL)) != count { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}
