import EventLoop
import Foundation
import Testing

@testable import HTTP2

/// Several addresses of one host (RFC 8305).
@Suite struct AddressRaceTests {
    /// An address that takes no connection and refuses none: its queue of connections to accept is full, so the kernel
    /// drops whatever else asks.
    private final class DeadAddress {
        private let address: String
        private let port: UInt16
        private var descriptors: [Int32] = []

        init(_ address: String, port: UInt16) throws {
            self.address = address
            self.port = port
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            descriptors.append(listener)
            var name = Self.name(address, port)
            let bound = withUnsafePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 && Glibc.listen(listener, 0) == 0
                }
            }
            guard bound else { throw POSIXError(.EADDRINUSE) }
            while try fill() {}
        }

        func end() {
            for descriptor in descriptors { close(descriptor) }
        }

        /// One more connection; false when it was not taken.
        private func fill() throws -> Bool {
            let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let client = socket(AF_INET, kind, 0)
            descriptors.append(client)
            var name = Self.name(address, port)
            _ = withUnsafePointer(to: &name) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard descriptors.count < 20 else { throw ServerError.unexpected("the queue is never full") }
            var wanted = pollfd(fd: client, events: Int16(POLLOUT), revents: 0)
            return poll(&wanted, 1, 300) == 1
        }

        private static func name(_ address: String, _ port: UInt16) -> sockaddr_in {
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = port.bigEndian
            inet_pton(AF_INET, address, &name.sin_addr)
            return name
        }
    }

    private static func server() throws -> ScriptedServer {
        try ScriptedServer { connection in
            try connection.begin()
            while true { connection.respond(try connection.nextRequest().stream) }
        }
    }

    /// The addresses of all `hosts`, as if they were those of one.
    private static func addresses(
        of hosts: [String], _ port: UInt16, _ loop: EventLoop
    ) async throws -> [SocketAddress] {
        var addresses: [SocketAddress] = []
        for host in hosts { addresses += try await Resolver.addresses(of: host, port: port, on: loop) }
        return addresses
    }

    @Test func aDeadFirstAddressCostsTheDelayAndNotATimeout() async throws {
        let server = try Self.server()
        let dead = try DeadAddress("127.0.0.2", port: server.port)
        defer { dead.end() }
        try await ClientHarness.run(port: server.port) {
            $0.connectTimeout = .seconds(60)
            $0.requestTimeout = .seconds(80)
            $0.attemptDelay = .milliseconds(100)
        } lookUp: { _, port, loop in
            try await Self.addresses(of: ["127.0.0.2", "127.0.0.1"], port, loop)
        } _: { harness in
            await harness.submit()
            // The harness waits for 20 s at most, which is less than half of the connect timeout.
            let results = try await harness.results(1)
            #expect(results[0].status == 200)
            #expect(await harness.statistics.connectionsFailed == 0)
        }
        server.stop()
        #expect(server.connections == 1)
    }

    @Test func aRefusedAddressMovesOnAtOnce() async throws {
        let server = try Self.server()
        try await ClientHarness.run(port: server.port) {
            $0.connectTimeout = .seconds(60)
            $0.requestTimeout = .seconds(80)
            $0.attemptDelay = .seconds(60)
        } lookUp: { _, port, loop in
            try await Self.addresses(of: ["127.0.0.2", "127.0.0.3", "127.0.0.1"], port, loop)
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].status == 200)
        }
        server.stop()
        #expect(server.connections == 1)
    }

    @Test func whenNoAddressAnswersEachIsNamed() async throws {
        let (descriptor, port) = try ScriptedServer.listen()
        Glibc.close(descriptor)
        let dead = try DeadAddress("127.0.0.2", port: port)
        defer { dead.end() }
        try await ClientHarness.run(port: port) {
            $0.connectTimeout = .milliseconds(500)
            $0.attemptDelay = .milliseconds(50)
        } lookUp: { _, port, loop in
            try await Self.addresses(of: ["127.0.0.2", "127.0.0.1"], port, loop)
        } _: { harness in
            await harness.submit()
            let results = try await harness.results(1)
            #expect(results[0].fault == .notSent(.noConnection))
            let reason = await harness.downReasons.last ?? ""
            #expect(await harness.downCode == .connectTimeout)
            #expect(reason.contains("127.0.0.1:\(port): Connection refused"), "\(reason)")
            #expect(reason.contains("127.0.0.2:\(port): no answer"), "\(reason)")
        }
    }

    @Test func whenAllRefuseItEndsAtOnce() async throws {
        let (descriptor, port) = try ScriptedServer.listen()
        Glibc.close(descriptor)
        try await ClientHarness.run(port: port) {
            $0.connectTimeout = .seconds(60)
            $0.requestTimeout = .seconds(80)
            $0.attemptDelay = .seconds(60)
        } lookUp: { _, port, loop in
            try await Self.addresses(of: ["127.0.0.1", "127.0.0.2"], port, loop)
        } _: { harness in
            await harness.submit()
            _ = try await harness.results(1)
            #expect(await harness.downCode == .connect)
            #expect(
                await harness.downReasons.last?.hasSuffix(
                    "127.0.0.1:\(port): Connection refused, 127.0.0.2:\(port): Connection refused") == true)
        }
    }

    @Test func theNameIsLookedUpForEachConnection() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            connection.goAway(last: 1)
        }
        let asked = Guarded(0)
        try await ClientHarness.run(port: server.port) { _ in
        } lookUp: { host, port, loop in
            asked.withLock { $0 += 1 }
            return try await Resolver.addresses(of: host, port: port, on: loop)
        } _: { harness in
            for number in 1...3 {
                await harness.submit(1, first: UInt64(number))
                try await harness.wait("the end of connection \(number)") {
                    $0.results.count == number && $0.replacedReasons.count == number
                }
            }
        }
        server.stop()
        #expect(asked.withLock { $0 } == 3)
        #expect(server.connections == 3)
    }

    @Test func aNameThatHangsHoldsUpNeitherTheLoopNorTheConnectTimeout() async throws {
        let release = DispatchSemaphore(value: 0)
        defer { release.signal() }
        try await ClientHarness.run(port: 443) {
            $0.connectTimeout = .milliseconds(300)
        } lookUp: { host, port, loop in
            try await loop.offload { _ = release.wait(timeout: .now() + 30) }
            return try await Resolver.addresses(of: host, port: port, on: loop)
        } _: { harness in
            await harness.submit()
            // The timer of the loop that the look-up would block ends the wait.
            let results = try await harness.results(1)
            #expect(results[0].fault == .notSent(.noConnection))
            #expect(await harness.downCode == .connectTimeout)
            #expect(await harness.downReasons.last?.hasSuffix("the name is not resolved") == true)
            release.signal()
        }
    }

    static let orders: [(given: String, tried: String)] = [
        ("", ""), ("4", "4"), ("66", "66"), ("666444", "646464"), ("4666", "4666"), ("44446", "46444"),
    ]

    /// RFC 8305 4; a digit stands for an address of its family.
    @Test(arguments: orders)
    func familiesTakeTurns(given: String, tried: String) async throws {
        let loop = EventLoop.startThread(name: "race-test")
        defer { loop.stop() }
        var addresses: [SocketAddress] = []
        for (index, family) in given.enumerated() {
            let host = family == "6" ? "2001:db8::\(index + 1)" : "192.0.2.\(index + 1)"
            addresses += try await Resolver.addresses(of: host, port: 443, on: loop)
        }
        let ordered = AddressRace.interleaved(addresses)
        #expect(ordered.map { $0.family == AF_INET6 ? "6" : "4" }.joined() == tried)
        for family in [AF_INET, AF_INET6] {
            #expect(ordered.filter { $0.family == family } == addresses.filter { $0.family == family })
        }
    }
}
