import Simulation
import Testing

@testable import HTTP2Simulation

/// The client against servers in memory, by virtual time: whatever a seed draws, all rules hold.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2SimulationTests {
    private static let seeds: ClosedRange<UInt64> = 1...200

    @Test func everySeedHoldsAllRulesAndAllFaultsStrike() {
        var tally = PipeTally()
        for seed in Self.seeds { tally.add(PipeReport.run(seed: seed)) }
        for failure in tally.failures.prefix(3) {
            let shrinker = PipeShrinker(seed: failure.seed)
            let lines = shrinker?.report.lines.suffix(40).joined(separator: "\n") ?? ""
            Issue.record("\(lines)\n\(shrinker?.summary ?? "")")
        }
        #expect(tally.failures.isEmpty)
        #expect(tally.rareFaults(below: 5) == [])
    }

    @Test func aSeedAlwaysGivesTheSameRun() {
        for seed in Self.seeds.prefix(12) {
            let first = PipeReport.run(seed: seed)
            let second = PipeReport.run(seed: seed, PipeOptions(keepsTrace: true))
            #expect(first.hash == second.hash && first.events == second.events, "seed \(seed)")
            #expect(second.lines.count == second.events)
        }
        #expect(Set(Self.seeds.prefix(12).map { PipeReport.run(seed: $0).hash }).count == 12)
    }

    @Test func withoutFaultsNothingIsSentAgain() {
        var requests = 0
        for seed in Self.seeds {
            guard PipePlan(seed: seed).rates.allSatisfy({ $0 == 0 }) else { continue }
            let report = PipeReport.run(seed: seed)
            #expect(report.struck.isEmpty && report.repeated == 0, "seed \(seed)")
            requests += report.answered
        }
        #expect(requests > 100)
    }

    @Test(arguments: PipeDefect.allCases) func `A defect breaks a rule`(defect: PipeDefect) {
        #expect(
            Self.seeds.contains { PipeReport.run(seed: $0, PipeOptions(defect: defect)).violation != nil })
    }

    @Test func aFailingRunIsMadeSmaller() throws {
        let options = PipeOptions(defect: .deniesUnanswered)
        let seed = try #require(
            Self.seeds.first { PipeReport.run(seed: $0, options).violation?.rule == "was looked at" })
        let whole = PipePlan(seed: seed).doings.count + PipeReport.run(seed: seed, options).struck.count
        let shrinker = try #require(PipeShrinker(seed: seed, options, limit: 150))
        #expect(shrinker.report.violation?.rule == "was looked at")
        #expect((shrinker.size.doings + shrinker.size.faults) * 2 < whole)
        #expect(!shrinker.report.lines.isEmpty && shrinker.tries <= 150)
    }
}
