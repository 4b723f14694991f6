import OutboxCore
import Testing

@Suite struct RetryBudgetTests {
    let start = ContinuousClock.now

    private func takeAll(_ budget: inout RetryBudget, at now: ContinuousClock.Instant) -> Int {
        var taken = 0
        while budget.take(at: now) { taken += 1 }
        return taken
    }

    @Test(arguments: [(10, 1000, 90), (10, 5, 10), (100, 50, 45), (0, 1000, 10), (10, 1_000_000, 990)])
    func retriesAreAShareOfFirstSends(percent: Int, firstSends: Int, retries: Int) {
        var budget = RetryBudget(percent: percent)
        budget.earned(firstSends)
        #expect(takeAll(&budget, at: start) == retries)
    }

    @Test func anOutageOfTenMinutesIsAskedNoMoreThanItsShare() {
        var budget = RetryBudget(percent: 10)
        budget.earned(10_000)
        var retries = 0
        for second in 0..<600 {
            let now = start + .seconds(second)
            let taken = takeAll(&budget, at: now)
            for _ in 0..<taken { budget.ended(.spent) }
            retries += taken
        }
        #expect(retries <= 1000)
        #expect(retries > 995, "and it never falls silent")
    }

    @Test func afterAnOutageRetriesDoubleWithEachRoundTrip() {
        var budget = RetryBudget(percent: 10)
        var waves: [Int] = []
        for _ in 0..<5 {
            let taken = takeAll(&budget, at: start)
            for _ in 0..<taken { budget.ended(.accepted) }
            waves.append(taken)
        }
        #expect(waves == [10, 20, 40, 80, 160])
    }

    @Test func whatIsKeptForTheMinutesOfAnOutageIsFreeOnceARetryIsAccepted() {
        var budget = RetryBudget(percent: 10)
        budget.earned(10_000)
        let first = takeAll(&budget, at: start)
        #expect(first == 990)
        for _ in 1..<first { budget.ended(.spent) }
        budget.ended(.accepted)
        #expect(takeAll(&budget, at: start) == 12, "the ten that were kept, and two for the one that was accepted")
    }

    @Test func whatWasNeverSentCostsNothing() {
        var budget = RetryBudget(percent: 10)
        for _ in 0..<takeAll(&budget, at: start) { budget.ended(.unsent) }
        #expect(takeAll(&budget, at: start) == 10)
    }

    @Test func withNothingLeftOneAMinuteIsTried() {
        var budget = RetryBudget(percent: 0)
        for _ in 0..<takeAll(&budget, at: start) { budget.ended(.spent) }
        #expect(budget.wait(at: start) == .seconds(60))
        #expect(takeAll(&budget, at: start + .seconds(59)) == 0)
        #expect(takeAll(&budget, at: start + .seconds(60)) == 1)
        #expect(takeAll(&budget, at: start + .seconds(121)) == 0, "not while that one is under way")
        budget.ended(.spent)
        #expect(takeAll(&budget, at: start + .seconds(121)) == 1)
    }

    @Test func aRefusedRetryWaitsBrieflyWhileOthersMayEarnMore() {
        var budget = RetryBudget(percent: 0)
        _ = takeAll(&budget, at: start)
        #expect(budget.wait(at: start) == .seconds(1))
    }
}
