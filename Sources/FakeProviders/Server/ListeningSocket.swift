import CLinux
import EventLoop
import Glibc

/// A listening TCP socket on the loop: hands over each connection as a non-blocking descriptor.
final class ListeningSocket: ReadinessHandler {
    /// The port, also when the system was asked to choose one.
    let port: UInt16
    private let descriptor: Int32
    private let loop: EventLoop
    private let accepted: (Int32) -> Void

    /// Connections taken in one turn, so that a flood of them leaves room for the ones that are open.
    private static let acceptsPerTurn = 64

    /// Listens on `host` (a numeric IPv4 or IPv6 address) and `port`, 0 for any. Loop only.
    init(host: String, port: UInt16, on loop: EventLoop, accepted: @escaping (Int32) -> Void) throws(FakeServerError) {
        let name = "\(host):\(port)"
        let family = host.contains(":") ? AF_INET6 : AF_INET
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .address(name, errno: errno) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        guard Self.bind(descriptor, host, port), listen(descriptor, 1024) == 0 else {
            let number = errno
            close(descriptor)
            throw .address(name, errno: number)
        }
        self.descriptor = descriptor
        self.port = Self.port(of: descriptor)
        self.loop = loop
        self.accepted = accepted
        loop.watch(descriptor, for: .readable, handler: self)
    }

    /// Stops listening. Loop only.
    func stop() {
        loop.unwatch(descriptor)
        close(descriptor)
    }

    func descriptorReady(_ ready: Interest) {
        for _ in 0..<Self.acceptsPerTurn {
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0 else { return }
            _ = fcntl(connection, F_SETFL, O_NONBLOCK)
            _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
            var yes: Int32 = 1
            setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
            accepted(connection)
        }
    }

    private static func bind(_ descriptor: Int32, _ host: String, _ port: UInt16) -> Bool {
        if host.contains(":") {
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            guard inet_pton(AF_INET6, host, &address.sin6_addr) == 1 else { return false }
            return bind(descriptor, &address)
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return false }
        return bind(descriptor, &address)
    }

    private static func bind<Address>(_ descriptor: Int32, _ address: inout Address) -> Bool {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size)) == 0
            }
        }
    }

    private static func port(of descriptor: Int32) -> UInt16 {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
        }
        // The port stands at the same place in both families, right behind the family.
        return withUnsafeBytes(of: &address) { UInt16($0[2]) << 8 | UInt16($0[3]) }
    }
}
