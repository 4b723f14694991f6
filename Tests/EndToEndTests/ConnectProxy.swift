import EventLoop
import Foundation
import Glibc
import Testing

/// An HTTP proxy on the loopback: lets a CONNECT through to the port it names, or refuses it by a status and repeats
/// what it was asked, as some do on their pages.
final class ConnectProxy: Sendable {
    let port: UInt16
    private let listener: Int32
    private let state = Guarded(State())

    private struct State {
        var refusal: Int?
        var requests: [String] = []
    }

    /// Listens on a free port, and refuses by the status `refusal` unless that is nil.
    init(refusingBy refusal: Int? = nil) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let descriptor = listener
        let bound = try #require(Self.loopback(0) { bind(descriptor, $0, $1) == 0 ? Self.port(of: descriptor) : nil })
        port = bound
        state.withLock { $0.refusal = refusal }
        listen(descriptor, 16)
        Thread.detachNewThread { self.accept() }
    }

    /// The heads of all requests so far.
    var requests: [String] { state.withLock { $0.requests } }

    /// Refuses by this status from now on.
    func refuse(by status: Int) { state.withLock { $0.refusal = status } }

    /// Lets everything through from now on.
    func letThrough() { state.withLock { $0.refusal = nil } }

    func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            if client < 0 { break }
            Thread.detachNewThread { self.serve(client) }
        }
        close(listener)
    }

    private func serve(_ client: Int32) {
        var head = ""
        var byte: UInt8 = 0
        while !head.hasSuffix("\r\n\r\n"), read(client, &byte, 1) == 1 {
            head.unicodeScalars.append(Unicode.Scalar(byte))
        }
        let refusal = state.withLock { state in
            state.requests.append(head)
            return state.refusal
        }
        let target = head.split(separator: " ").dropFirst().first?.split(separator: ":").last.flatMap { UInt16($0) }
        guard refusal == nil, let target, let server = Self.connect(to: target) else {
            let line = head.split(whereSeparator: \.isNewline).joined(separator: " ")
            Self.write(
                "HTTP/1.1 \(refusal ?? 502) \(line)\r\nContent-Length: \(head.utf8.count)\r\n\r\n\(head)", to: client)
            close(client)
            return
        }
        Self.write("HTTP/1.1 200 Connection established\r\n\r\n", to: client)
        Thread.detachNewThread { Self.pump(from: client, to: server) }
        Self.pump(from: server, to: client)
    }

    // MARK: Sockets

    private static func loopback<Result>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result)
        -> Result
    {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    private static func port(of descriptor: Int32) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isKnown = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) == 0 }
        }
        return isKnown ? UInt16(bigEndian: address.sin_port) : nil
    }

    private static func connect(to port: UInt16) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let isConnected = loopback(port) { Glibc.connect(descriptor, $0, $1) == 0 }
        if isConnected { return descriptor }
        close(descriptor)
        return nil
    }

    private static func write(_ text: String, to descriptor: Int32) {
        let bytes = Array(text.utf8)
        _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    private static func pump(from source: Int32, to target: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(source, &buffer, buffer.count)
            if count <= 0 || send(target, buffer, count, Int32(MSG_NOSIGNAL)) != count { break }
        }
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}
