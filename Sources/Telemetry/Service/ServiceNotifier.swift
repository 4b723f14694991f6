import Glibc

/// Tells the service manager how the process is doing, in the protocol of `sd_notify(3)`.
///
/// Without a service manager every call does nothing. A message that cannot be delivered at once is given up: the next
/// one says the same or better.
package struct ServiceNotifier: Sendable {
    /// Address of the manager's datagram socket; nil without one.
    private let address: UnixAddress?
    /// How often `watchdog()` is wanted at least, or nil when nobody watches. A caller beats at half of it.
    package let watchdogInterval: Duration?

    /// `socket` is the value of `NOTIFY_SOCKET` (a path, or `@` and an abstract name), `watchdogMicroseconds` that of
    /// `WATCHDOG_USEC` and `watchdogProcess` that of `WATCHDOG_PID`, which names the process that is watched.
    package init(socket: String?, watchdogMicroseconds: String? = nil, watchdogProcess: String? = nil) {
        address = socket.flatMap(UnixAddress.init)
        let isWatched = watchdogProcess == nil || watchdogProcess.flatMap(Int32.init) == getpid()
        let interval = watchdogMicroseconds.flatMap(Int64.init).flatMap { $0 > 0 ? Duration.microseconds($0) : nil }
        watchdogInterval = isWatched ? interval : nil
    }

    /// Start is complete.
    package func ready() {
        send("READY=1")
    }

    /// One line on what the process is doing, for `systemctl status`.
    package func status(_ text: String) {
        // A line feed would begin another variable.
        let line = String(text.prefix(200).map { $0.isNewline || $0 == "\0" ? " " : $0 })
        send("STATUS=" + line)
    }

    /// The process has begun to stop.
    package func stopping() {
        send("STOPPING=1")
    }

    /// The process is alive.
    package func watchdog() {
        send("WATCHDOG=1")
    }

    private func send(_ message: String) {
        guard let address else { return }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        address.send(Array(message.utf8), from: descriptor)
    }
}

/// Address of a Unix socket: a path or an abstract name.
private struct UnixAddress: Sendable {
    private let name: [UInt8]

    /// Nil for what is no address (`sd_notify` accepts an absolute path or `@` and a name) or too long for one.
    init?(_ text: String) {
        guard text.count > 1, text.first == "/" || text.first == "@" else { return nil }
        var name = Array(text.utf8)
        if name[0] == UInt8(ascii: "@") { name[0] = 0 }
        guard name.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else { return nil }
        self.name = name
    }

    func send(_ message: [UInt8], from descriptor: Int32) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name ends with the length; a path with its NUL, which is there because the rest is zero.
        let prefix = MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 2
        let length = socklen_t(prefix + name.count + (name[0] == 0 ? 0 : 1))
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                _ = sendto(
                    descriptor, message, message.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL),
                    pointer, length)
            }
        }
    }
}
