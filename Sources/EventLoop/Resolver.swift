import Glibc

/// An address to connect to: the bytes of a `sockaddr`, and how it is printed.
package struct SocketAddress: Sendable, Hashable, CustomStringConvertible {
    /// The `sockaddr_in` or `sockaddr_in6`, byte for byte as `connect` takes it.
    package let bytes: [UInt8]
    /// `AF_INET` or `AF_INET6`.
    package let family: Int32
    /// Numeric host and port, for messages.
    package let description: String
}

/// A host name could not be resolved.
package struct ResolverError: Error, Equatable, CustomStringConvertible {
    /// The name that was asked for.
    package let host: String
    /// The resolver's own words (`gai_strerror`).
    package let reason: String

    package var description: String { "host \(host) cannot be resolved: \(reason)" }
}

/// Host names to addresses, off the loop. Nothing is cached: each connection asks anew, as Apple advises.
package enum Resolver {
    /// Addresses of `host` for a TCP connection to `port`, in the order of the system's preference (RFC 6724).
    ///
    /// Throws a `ResolverError`. It waits as long as the system's resolver does (resolv.conf: 5 s an attempt).
    package static func addresses(
        of host: String, port: UInt16, on loop: EventLoop
    ) async throws -> [SocketAddress] {
        try await loop.offload(to: pool) { try lookUp(host, port) }
    }

    /// Of its own, for all loops together: a look-up may hang for half a minute, and signing must not wait for it.
    private static let pool = ThreadPool(threads: 4)

    private static func lookUp(_ host: String, _ port: UInt16) throws -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV
        var list: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, String(port), &hints, &list)
        guard result == 0 else {
            throw ResolverError(host: host, reason: String(cString: gai_strerror(result)))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var next = list
        while let info = next?.pointee {
            if let address = describe(info) { addresses.append(address) }
            next = info.ai_next
        }
        return addresses
    }

    private static func describe(_ info: addrinfo) -> SocketAddress? {
        guard let address = info.ai_addr else { return nil }
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        var service = [CChar](repeating: 0, count: Int(NI_MAXSERV))
        let named = getnameinfo(
            address, info.ai_addrlen, &host, UInt32(host.count), &service, UInt32(service.count),
            NI_NUMERICHOST | NI_NUMERICSERV)
        guard named == 0 else { return nil }
        let printed = host.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        let port = service.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        return SocketAddress(
            bytes: [UInt8](UnsafeRawBufferPointer(start: address, count: Int(info.ai_addrlen))),
            family: info.ai_family,
            description: info.ai_family == AF_INET6 ? "[\(printed)]:\(port)" : "\(printed):\(port)")
    }
}
