import Foundation
import Support

/// A server that takes connections and never says a word.
final class SilentPeer: Sendable {
    private let listener: Int32
    /// Where it listens, on loopback.
    let port: UInt16

    init() throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let taken = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                // The kernel takes connections for it: nobody need accept them.
                bind(descriptor, name, length) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, name, &length) == 0
            }
        }
        guard taken else {
            close(descriptor)
            throw TestSetupError("no port to listen on: \(errno)")
        }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit {
        close(listener)
    }
}
