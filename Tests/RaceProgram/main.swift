import Glibc
import Races
import Support

/// Lets transactions and workers race on the servers of TEST_POSTGRES_15 and TEST_POSTGRES_18, and says in one line per
/// kind and server what that came to. Ends with 3 when something broke, with 2 for a wrong command line.
///
///     postbell-races [--tries N] [--lanes N] [--kind NAME] [--server 15|18]
struct RaceProgram: Sendable {
    private static let kinds = ["roles", "registrations", "releases", "supersessions", "sleep"]

    private var tries = 10_000
    /// Workers that go to sleep at once.
    private var lanes = 4
    private var kinds = Self.kinds
    private var servers = DatabaseServer.allCases

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch (option, Int(value)) {
            case ("--tries", let number?) where number > 0: tries = number
            case ("--lanes", let number?) where (1...8).contains(number): lanes = number
            case ("--kind", _) where Self.kinds.contains(value): kinds = [value]
            case ("--server", 15): servers = [.postgres15]
            case ("--server", 18): servers = [.postgres18]
            default: return nil
            }
        }
    }

    /// Runs everything; answers the status to end with.
    func run() async -> Int32 {
        var status: Int32 = 0
        for kind in kinds {
            for server in servers {
                do {
                    for report in try await reports(kind, server) {
                        print(report.line)
                        for fault in report.findings.prefix(20) { print("  \(fault)") }
                        if !report.findings.isEmpty { status = 3 }
                    }
                } catch {
                    print("\(kind), \(server): \(error)")
                    status = 3
                }
                fflush(nil)
            }
        }
        return status
    }

    private func reports(_ kind: String, _ server: DatabaseServer) async throws -> [RaceReport] {
        switch kind {
        case "roles": return [try await RoleRace.run(on: server, tries: tries)]
        case "registrations":
            var reports: [RaceReport] = []
            for order in RegistrationRace.Order.allCases {
                reports.append(try await RegistrationRace.run(order, on: server, tries: tries))
            }
            return reports
        case "releases": return [try await ReleaseRace.run(on: server, tries: tries)]
        case "supersessions": return [try await SupersessionRace.run(on: server, tries: tries)]
        default: return [try await SleepRace.run(on: server, tries: tries, lanes: lanes)]
        }
    }

    /// Runs what the command line asks for, and ends.
    static func main() -> Never {
        guard let program = RaceProgram(Array(CommandLine.arguments.dropFirst())) else {
            print("usage: postbell-races [--tries N] [--lanes N] [--kind NAME] [--server 15|18]")
            exit(2)
        }
        Task(executorPreference: DatabaseServer.loop) { exit(await program.run()) }
        while true { pause() }
    }
}

RaceProgram.main()
