import Testing

@testable import OutboxCore

/// When an idle worker looks again, and when it holds the awake keys.
@Suite struct WakePlanTests {
    private let start = ContinuousClock.now

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    /// A worker that has let go of its keys at the start and has looked ever since.
    private func asleep() -> WakePlan {
        var plan = WakePlan(poll: .seconds(1))
        for milliseconds in [0, 0, 5, 55] {
            _ = plan.foundNothing(untilDue: nil, jitter: 0, now: at(milliseconds))
        }
        return plan
    }

    @Test func goingToSleepLetsGoThenLooksAgainAfterFiveAndFiftyMilliseconds() {
        var plan = WakePlan(poll: .seconds(1))
        let steps = [0, 0, 5, 55, 1055].map { plan.foundNothing(untilDue: nil, jitter: 0, now: at($0)) }
        #expect(
            steps == [
                .letGo, .wait(.milliseconds(5)), .wait(.milliseconds(50)), .wait(.seconds(1)), .wait(.seconds(1)),
            ])
    }

    @Test func jitterShortensThePollAndNeverLengthensIt() {
        var plan = asleep()
        #expect(plan.foundNothing(untilDue: nil, jitter: 0.5, now: at(100)) == .wait(.milliseconds(900)))
    }

    @Test func theNextDueRowCutsTheWaitShort() {
        var plan = asleep()
        func step(_ untilDue: Duration) -> WakePlan.Step {
            plan.foundNothing(untilDue: untilDue, jitter: 0, now: at(100))
        }
        #expect(step(.milliseconds(300)) == .wait(.milliseconds(300)))
        #expect(step(.microseconds(10)) == .wait(.milliseconds(1)))
        #expect(step(.seconds(90)) == .wait(.seconds(1)))
    }

    @Test func theKeysAreHeldOnlyWhereOneLookAfterTheOtherFindsWork() {
        var plan = asleep()
        for _ in 1..<WakePlan.findsBeforeAwake {
            plan.foundWork()
            #expect(!plan.isAwake)
        }
        plan.foundWork()
        #expect(plan.isAwake)
        #expect(plan.foundNothing(untilDue: nil, jitter: 0, now: at(100)) == .letGo)
        #expect(!plan.isAwake)
    }

    @Test func aRowThatCameAloneIsFollowedByNoLookBeforeThePoll() {
        var plan = asleep()
        plan.foundWork()
        #expect(plan.foundNothing(untilDue: nil, jitter: 0, now: at(100)) == .wait(.seconds(1)))
        plan.foundWork()
        #expect(plan.foundNothing(untilDue: nil, jitter: 0, now: at(200)) == .wait(.seconds(1)))
        #expect(!plan.isAwake, "looks that found nothing lie between")
    }

    @Test func workFoundMeanwhileLeavesTheLooksForProducersThatSawTheKeys() {
        var plan = WakePlan(poll: .seconds(1))
        #expect(plan.foundNothing(untilDue: nil, jitter: 0, now: at(0)) == .letGo)
        plan.foundWork()
        #expect(plan.foundNothing(untilDue: nil, jitter: 0, now: at(2)) == .wait(.milliseconds(3)))
    }
}
