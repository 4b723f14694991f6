import Foundation
import Support

/// Forwards one connection to a server on the loopback, and cuts it after so many bytes in one direction.
final class CuttingForwarder: Sendable {
    enum Direction: Sendable {
        case toServer, toClient
    }

    let port: UInt16
    private let listener: Listener

    /// Lets `limit` bytes through in `direction`, and then ends both sides, by TCP resets if `resets`.
    init(to server: UInt16, cutting direction: Direction, after limit: Int, resets: Bool) throws {
        listener = try Listener { client in
            let upstream = Self.connect(to: server)
            let done = DispatchSemaphore(value: 0)
            for (source, target, isCut) in [
                (client, upstream, direction == .toServer), (upstream, client, direction == .toClient),
            ] {
                Thread.detachNewThread {
                    Self.pump(from: source, to: target, limit: isCut ? limit : .max)
                    for descriptor in [client, upstream] {
                        if resets { Self.resetOnClose(descriptor) }
                        shutdown(descriptor, Int32(SHUT_RD))
                    }
                    done.signal()
                }
            }
            // Either end ends both: whoever reads finds the end, and the descriptors go only when nobody uses them.
            done.wait()
            done.wait()
            for descriptor in [client, upstream] { close(descriptor) }
        }
        port = listener.port
    }

    func stop() { listener.stop() }

    private static func pump(from source: Int32, to target: Int32, limit: Int) {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        var left = limit
        while left > 0 {
            let count = read(source, &buffer, min(buffer.count, left))
            guard count > 0, send(target, buffer, count, Int32(MSG_NOSIGNAL)) == count else { return }
            left -= count
        }
    }

    private static func resetOnClose(_ descriptor: Int32) {
        var noLinger = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &noLinger, socklen_t(MemoryLayout<linger>.size))
    }

    private static func connect(to port: UInt16) -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = port.bigEndian
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return descriptor
    }
}
