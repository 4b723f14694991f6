import Testing

@testable import DispatchRuntime

/// When an idle worker looks again.
@Suite struct WakePlanTests {
    @Test func goingToSleepLetsGoThenLooksAgainAfterFiveAndFiftyMilliseconds() {
        var plan = WakePlan(poll: .seconds(1))
        let steps = (0..<5).map { _ in plan.foundNothing(untilDue: nil, jitter: 0) }
        #expect(
            steps == [
                .letGo, .wait(.milliseconds(5)), .wait(.milliseconds(50)), .wait(.seconds(1)), .wait(.seconds(1)),
            ])
    }

    @Test func jitterShortensThePollAndNeverLengthensIt() {
        var plan = WakePlan(poll: .seconds(1))
        for _ in 0..<3 { _ = plan.foundNothing(untilDue: nil, jitter: 0) }
        #expect(plan.foundNothing(untilDue: nil, jitter: 0.5) == .wait(.milliseconds(900)))
    }

    @Test func theNextDueRowCutsTheWaitShort() {
        var plan = WakePlan(poll: .seconds(1))
        for _ in 0..<3 { _ = plan.foundNothing(untilDue: nil, jitter: 0) }
        #expect(plan.foundNothing(untilDue: .milliseconds(300), jitter: 0) == .wait(.milliseconds(300)))
        #expect(plan.foundNothing(untilDue: .microseconds(10), jitter: 0) == .wait(.milliseconds(1)))
        #expect(plan.foundNothing(untilDue: .seconds(90), jitter: 0) == .wait(.seconds(1)))
    }

    @Test func theKeysAreHeldOnlyWhileThereIsWork() {
        var plan = WakePlan(poll: .seconds(1))
        #expect(plan.isAwake)
        _ = plan.foundNothing(untilDue: nil, jitter: 0)
        #expect(!plan.isAwake)
        plan.woken()
        #expect(!plan.isAwake, "a notification alone is no work")
        plan.foundWork()
        #expect(plan.isAwake)
    }

    @Test func workBeginsItAnew() {
        var plan = WakePlan(poll: .seconds(1))
        for _ in 0..<4 { _ = plan.foundNothing(untilDue: nil, jitter: 0) }
        plan.foundWork()
        #expect(plan.foundNothing(untilDue: nil, jitter: 0) == .letGo)
    }
}
