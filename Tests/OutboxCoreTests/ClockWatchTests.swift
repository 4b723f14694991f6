import OutboxCore
import Testing

/// Steps of the database's clock (race S11): its leases are not to be recovered by the new time.
@Suite struct ClockWatchTests {
    private let origin = ContinuousClock.now

    /// Hears a reading `database` seconds after the start, asked and answered at these local seconds.
    private func hear(_ watch: inout ClockWatch, _ database: Double, asked: Double, answered: Double) -> Bool {
        watch.heard(
            DispatchScene.start + .seconds(database), askedAt: origin + .seconds(asked),
            answeredAt: origin + .seconds(answered), lease: .seconds(30))
    }

    @Test(arguments: [3.5, 3600, -1.5, -3600])
    func aStepKeepsRecoveriesWaitingForOneLease(step: Double) {
        var watch = ClockWatch()
        let first = hear(&watch, 0, asked: 0, answered: 0.01)
        let second = hear(&watch, 1 + step, asked: 1, answered: 1.01)
        #expect(!first && second)
        #expect(!watch.mayRecover(at: origin + .seconds(31)))
        #expect(watch.mayRecover(at: origin + .seconds(31.02)))
        let third = hear(&watch, 2 + step, asked: 2, answered: 2.01)
        #expect(!third, "the new time is the time from then on")
    }

    @Test func slowAnswersAreNoSteps() {
        var watch = ClockWatch()
        let readings = [
            hear(&watch, 0, asked: 0, answered: 8), hear(&watch, 8.5, asked: 8.5, answered: 8.6),
            hear(&watch, 19, asked: 9, answered: 19), hear(&watch, 20, asked: 20, answered: 20),
            hear(&watch, 21.9, asked: 21, answered: 21),
        ]
        #expect(readings == [false, false, false, false, false])
        #expect(watch.mayRecover(at: origin))
    }
}
