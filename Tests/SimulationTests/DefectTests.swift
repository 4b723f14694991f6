import Testing

@testable import Simulation

/// The rules can fail: each fault put in on purpose breaks one.
@Suite(.timeLimit(.minutes(5)))
struct DefectTests {
    /// Seeds within which a defect has to be seen.
    private static let seeds: ClosedRange<UInt64> = 1...600

    /// Those that chance does not bring to light: the conformance suite has a case for each.
    static let hidden: [StoreDefect] = [
        .returnsWithoutBit, .deviceJoinsNothing, .movesForgotten, .recoversLate, .nobodyIsDead,
    ]

    @Test(arguments: StoreDefect.allCases.filter { !hidden.contains($0) })
    func `A defect of the store breaks a rule`(defect: StoreDefect) {
        #expect(
            Self.seeds.contains { seed in
                SimulationReport.run(seed: seed, SimulationOptions(storeDefect: defect)).violation != nil
            })
    }

    @Test(arguments: DriverDefect.allCases)
    func `A defect of the worker breaks a rule`(defect: DriverDefect) {
        #expect(
            Self.seeds.contains { seed in
                SimulationReport.run(seed: seed, SimulationOptions(driverDefect: defect)).violation != nil
            })
    }
}
