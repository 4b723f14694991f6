import Foundation
import Glibc
import Testing

@testable import Telemetry

@Suite struct ServiceNotifierTests {
    @Test(arguments: [true, false])
    func messagesReachTheManager(isAbstract: Bool) throws {
        let manager = try Manager(isAbstract: isAbstract)
        let notifier = ServiceNotifier(socket: manager.variable)
        notifier.ready()
        #expect(manager.receive() == "READY=1")
        notifier.status("waiting for the database\nREADY=0\0x")
        #expect(manager.receive() == "STATUS=waiting for the database READY=0 x")
        notifier.watchdog()
        #expect(manager.receive() == "WATCHDOG=1")
        notifier.stopping()
        #expect(manager.receive() == "STOPPING=1")
        #expect(manager.receive() == nil)
    }

    @Test(arguments: [
        nil, "", "@", "relative", "vsock:2:1", "/nowhere/notify", "/" + String(repeating: "x", count: 200),
    ])
    func withoutAManagerNothingHappens(socket: String?) {
        let notifier = ServiceNotifier(socket: socket)
        notifier.ready()
        #expect(notifier.watchdogInterval == nil)
    }

    @Test func aManagerThatDoesNotReadHoldsNobodyUp() throws {
        let manager = try Manager(isAbstract: true)
        let notifier = ServiceNotifier(socket: manager.variable)
        for _ in 0..<5000 { notifier.watchdog() }
        #expect(manager.receive() == "WATCHDOG=1")
    }

    @Test func theWatchdogIntervalIsForThisProcessOnly() {
        func interval(_ microseconds: String?, _ process: String?) -> Duration? {
            ServiceNotifier(socket: nil, watchdogMicroseconds: microseconds, watchdogProcess: process).watchdogInterval
        }
        #expect(interval("30000000", nil) == .seconds(30))
        #expect(interval("30000000", String(getpid())) == .seconds(30))
        #expect(interval("30000000", "1") == nil)
        #expect(interval("30000000", "x") == nil)
        #expect(interval("0", nil) == nil)
        #expect(interval("soon", nil) == nil)
        #expect(interval(nil, nil) == nil)
    }
}

/// The service manager's end: a datagram socket at a path or under an abstract name.
private final class Manager {
    let variable: String
    private let descriptor: Int32
    private let directory: URL

    init(isAbstract: Bool) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let path = directory.appending(path: "notify").path
        variable = isAbstract ? "@" + path : path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array((isAbstract ? "\0" + path : path).utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(2 + name.count + (isAbstract ? 0 : 1))
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        try #require(bound == 0)
    }

    deinit {
        close(descriptor)
        try? FileManager.default.removeItem(at: directory)
    }

    /// The next message that has arrived, if any.
    func receive() -> String? {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
}
