import OutboxCore
import Testing

@Suite struct AnswerWindowTests {
    let start = ContinuousClock.now

    @Test func countsByKindAndForgetsWhatIsOld() {
        var window = AnswerWindow(.seconds(80))
        for second in 0..<40 { window.count(second % 4 == 0 ? .tokenFault : .good, at: start + .seconds(second)) }
        window.count(.providerFault, at: start + .seconds(40))
        window.count(.throttled, at: start + .seconds(41))
        #expect(window.total.answers == 42)
        #expect(window.total.tokenFaults == 10)
        #expect(window.total.providerFaults == 1)
        #expect(window.total.throttled == 1)
        window.count(.good, at: start + .seconds(85))
        #expect(window.total.answers == 33, "the first ten seconds are forgotten")
        #expect(window.total.tokenFaults == 7)
        window.count(.good, at: start + .seconds(1000))
        #expect(
            window.total
                == {
                    var one = AnswerWindow.Counts()
                    one.answers = 1
                    return one
                }())
    }

    @Test(arguments: [AnswerWindow.Answer.good, .providerFault, .tokenFault, .throttled])
    func forgetsEachKindStepByStep(answer: AnswerWindow.Answer) {
        var window = AnswerWindow(.seconds(80))
        window.count(answer, at: start)
        for second in 1...9 { window.count(.good, at: start + .seconds(second * 10)) }
        let total = window.total
        #expect(total.answers < 10)
        #expect((total.providerFaults, total.tokenFaults, total.throttled) == (0, 0, 0))
    }

    @Test func isExactOverManyRandomTimes() {
        // Against a list of all answers: what the window holds is between seven eighths of it and all of it.
        var random = SplitMix(seed: 11)
        var window = AnswerWindow(.seconds(80))
        var times: [Double] = []
        var now = 0.0
        for _ in 0..<2000 {
            now += random.fraction() * (random.fraction() < 0.05 ? 60 : 1)
            times.append(now)
            window.count(.good, at: start + .seconds(now))
            let least = times.count { $0 > now - 70 }
            let most = times.count { $0 > now - 80 }
            #expect((least...most).contains(window.total.answers))
        }
    }

    @Test(
        "the guard trips beyond share and count",
        arguments: [
            (answers: 100, faults: 20, trips: true), (answers: 100, faults: 19, trips: false),
            (answers: 104, faults: 20, trips: false), (answers: 20, faults: 20, trips: true),
            (answers: 10_000, faults: 1999, trips: false), (answers: 10_000, faults: 2000, trips: true),
            (answers: 0, faults: 0, trips: false),
        ])
    func theGuard(answers: Int, faults: Int, trips: Bool) {
        var counts = AnswerWindow.Counts()
        counts.answers = answers
        counts.tokenFaults = faults
        counts.throttled = faults
        #expect(StormGuard().tripsByTokens(counts) == trips)
        #expect(StormGuard().tripsByThrottling(counts) == trips)
    }
}
