import EventLoop
import FakeProviders
import Glibc
import Synchronization

/// The services from their start to their end.
actor Session {
    private let arguments: Arguments
    private let loop: EventLoop
    private let services: Services
    private let scenario: Scenario?
    private var signals: [SignalSource] = []
    private let exitStatus = Atomic<Int32>(0)

    /// Makes certificates, keys and accounts, and reads the scenario. Throws `FakeServerError` and `ScenarioError`.
    init(_ arguments: Arguments, on loop: EventLoop) throws {
        self.arguments = arguments
        self.loop = loop
        // First, so that a slip in it costs nothing.
        scenario = try arguments.scenario.map { try Scenario.read($0).faster(by: arguments.speed) }
        services = try Services(arguments, on: loop)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// The process's exit status, once the loop has ended.
    nonisolated var status: Int32 { exitStatus.load(ordering: .acquiring) }

    /// Starts the services and arranges their end.
    func begin() async {
        do {
            let ports = try await services.start()
            if let scenario { await services.play(scenario) }
            if let file = arguments.portFile {
                for (name, port) in ports {
                    let suffix = name == "port" ? "" : "." + name.dropLast("_port".count)
                    try IdentityFiles.replace(file + suffix, with: Array("\(port)\n".utf8), mode: 0o644)
                }
            }
            announce(ports)
        } catch {
            Program.complain("\(error)")
            exitStatus.store(1, ordering: .releasing)
            return loop.stop()
        }
        for number in [SIGTERM, SIGINT] {
            signals.append(SignalSource(number, on: loop) { [weak self] _ in self?.endSoon() })
        }
        signals.append(SignalSource(SIGHUP, on: loop) { [weak self] _ in self?.reloadSoon() })
        if let limit = arguments.exitAfter {
            loop.arm(at: .now + limit) { [weak self] in self?.endSoon() }
        }
    }

    private nonisolated func endSoon() {
        Task(executorPreference: loop) { await self.end() }
    }

    private nonisolated func reloadSoon() {
        Task(executorPreference: loop) { await self.reload() }
    }

    /// Reads the scenario again; one that is wrong leaves the old one going on.
    private func reload() async {
        guard let path = arguments.scenario else { return }
        do {
            await services.play(try Scenario.read(path).faster(by: arguments.speed))
            Program.say("{\"event\":\"scenario\"}")
        } catch {
            Program.complain("\(error); the scenario before goes on")
        }
    }

    private func end() async {
        Program.say("{\"event\":\"stopped\",\(await services.stop())}")
        loop.stop()
    }

    private func announce(_ ports: [(name: String, port: UInt16)]) {
        let host = arguments.apns.host.contains(":") ? "[\(arguments.apns.host)]" : arguments.apns.host
        let listed = ports.map { "\"\($0.name)\":\($0.port)" }.joined(separator: ",")
        Program.say("{\"event\":\"listening\",\"address\":\"\(host):\(ports.first?.port ?? 0)\",\(listed)}")
    }
}
