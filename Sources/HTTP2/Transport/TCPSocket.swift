import CLinux
import EventLoop
import Glibc

/// What the kernel said about a socket.
struct SocketFailure: Error {
    /// The kernel's words.
    let reason: String
}

/// Non-blocking TCP sockets, as plain descriptors.
enum TCPSocket {
    /// Begins to connect to `address`. The caller owns the descriptor; it is writable when the attempt has ended.
    static func connecting(to address: SocketAddress) throws(SocketFailure) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.family, kind, 0)
        guard descriptor >= 0 else { throw SocketFailure(reason: TLSFailure.system(errno)) }
        var one: Int32 = 1
        // Requests are corked by us; the kernel shall not hold the last piece back.
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        let result = address.bytes.withUnsafeBytes { bytes in
            connect(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard result == 0 || errno == EINPROGRESS else {
            let reason = TLSFailure.system(errno)
            close(descriptor)
            throw SocketFailure(reason: reason)
        }
        return descriptor
    }

    /// How the attempt of `descriptor` ended; nil for success.
    static func failure(of descriptor: Int32) -> String? {
        var number: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size)
        return number == 0 ? nil : TLSFailure.system(number)
    }
}
