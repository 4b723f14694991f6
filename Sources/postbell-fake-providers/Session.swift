import EventLoop
import FakeProviders
import Glibc
import Synchronization

/// The service from its start to its end.
actor Session {
    private let arguments: Arguments
    private let loop: EventLoop
    private let service: FakeAPNS
    private var signals: [SignalSource] = []
    private let exitStatus = Atomic<Int32>(0)

    /// Makes certificates and keys as the command line wants them. Throws `FakeServerError`.
    init(_ arguments: Arguments, on loop: EventLoop) throws {
        self.arguments = arguments
        self.loop = loop
        let identity = try ServerIdentity.generated()
        var configuration = FakeAPNSConfiguration(identity: identity)
        if let directory = arguments.certificates {
            try IdentityFiles.write(identity, to: directory)
            let made = directory + "/apns.p8"
            if arguments.makesKey { try IdentityFiles.makeProviderKey(at: made) }
            if let path = arguments.makesKey ? made : arguments.keyFile {
                let key = try IdentityFiles.providerKey(
                    at: path, keyID: arguments.keyID, teamID: arguments.teamID)
                configuration.keys = [key]
            }
        }
        configuration.host = arguments.host
        configuration.port = arguments.port
        configuration.topics = arguments.topics
        configuration.streams = arguments.streams
        configuration.streamsBeforeToken = arguments.streamsBeforeToken
        configuration.isSandbox = arguments.isSandbox
        configuration.throttlesAfterRejection = arguments.throttles
        configuration.slowness = arguments.slowness
        configuration.log = arguments.log
        configuration.keptRequests = 0
        service = try FakeAPNS(configuration, on: loop)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// The process's exit status, once the loop has ended.
    nonisolated var status: Int32 { exitStatus.load(ordering: .acquiring) }

    /// Starts the service and arranges its end.
    func begin() async {
        do {
            let port = try await service.start()
            if let file = arguments.portFile {
                try IdentityFiles.replace(file, with: Array("\(port)\n".utf8), mode: 0o644)
            }
            announce(port)
        } catch {
            Program.complain("\(error)")
            exitStatus.store(1, ordering: .releasing)
            return loop.stop()
        }
        for number in [SIGTERM, SIGINT] {
            signals.append(SignalSource(number, on: loop) { [weak self] _ in self?.endSoon() })
        }
        if let limit = arguments.exitAfter {
            loop.arm(at: .now + limit) { [weak self] in self?.endSoon() }
        }
    }

    private nonisolated func endSoon() {
        Task(executorPreference: loop) { await self.end() }
    }

    private func end() async {
        let found = await service.statistics
        await service.stop()
        Program.say(
            """
            {"event":"stopped","connections":\(found.connections),"requests":\(found.requests),\
            "accepted":\(found.accepted),"rejected":\(found.rejected),"unanswered":\(found.unanswered),\
            "provider_tokens":\(found.providerTokens),"protocol_errors":\(found.protocolErrors)}
            """)
        loop.stop()
    }

    private func announce(_ port: UInt16) {
        let host = arguments.host.contains(":") ? "[\(arguments.host)]" : arguments.host
        Program.say("{\"event\":\"listening\",\"address\":\"\(host):\(port)\",\"port\":\(port)}")
    }
}
