import OutboxCore
import Support
import Testing

@testable import Simulation

/// The simulated store and PostgreSQL answer the same to the same steps, and hold the same afterwards. That is what
/// makes a simulation believable.
@Suite(.timeLimit(.minutes(5)))
struct ConformanceTests {
    @Test(arguments: DatabaseServer.allCases)
    func `Both stores agree on every named case`(server: DatabaseServer) async throws {
        for (name, commands) in StoreCases.all {
            try await Self.compare(commands, named: name, on: server)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Both stores agree on what a seed draws`(server: DatabaseServer) async throws {
        for seed in 1...8 as ClosedRange<UInt64> {
            var source = CommandSource(seed: seed)
            try await Self.compare(source.commands(70), named: "seed \(seed)", on: server)
        }
    }

    /// A defect that chance does not bring to light makes its case come out otherwise.
    @Test(arguments: DefectTests.hidden)
    func `A named case shows each hidden defect`(defect: StoreDefect) {
        let isSeen = StoreCases.all.contains { _, commands in
            let (sound, broken) = (SimulatedSubject(), SimulatedSubject(defect: defect))
            return commands.contains { command in
                sound.perform(command) != broken.perform(command) || sound.contents() != broken.contents()
            }
        }
        #expect(isSeen)
    }

    private static func compare(
        _ commands: [StoreCommand], named name: String, on server: DatabaseServer
    ) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            let simulated = SimulatedSubject()
            let postgres = try await PostgresSubject(database, workers: 3)
            for (number, command) in commands.enumerated() {
                let answer = simulated.perform(command)
                let real = try await postgres.perform(command)
                let difference = describe(answer, real) + describe(simulated.contents(), try await postgres.contents())
                guard difference.isEmpty else {
                    Issue.record("\(name), step \(number + 1), \(command): \(difference.joined(separator: "\n"))")
                    break
                }
            }
            #expect(try await postgres.faults() == [], "\(name)")
            await postgres.close()
        }
    }

    /// Lines that only one of the stores has.
    private static func describe(_ simulated: [String], _ real: [String]) -> [String] {
        simulated.filter { !real.contains($0) }.map { "simulated: \($0)" }
            + real.filter { !simulated.contains($0) }.map { "PostgreSQL: \($0)" }
            + (simulated.count == real.count ? [] : ["\(simulated.count) lines against \(real.count)"])
    }
}
