import OutboxCore
import Testing

@Suite struct ConcurrencyLimitTests {
    let start = ContinuousClock.now

    @Test func holdsNobodyBackUntilTheProviderAsksForLess() {
        let limit = ConcurrencyLimit()
        #expect(limit.value == nil)
        #expect(limit.room(beside: 5000) == .max)
    }

    @Test func isHalvedOncePerBurst() {
        var limit = ConcurrencyLimit()
        limit.throttled(inFlight: 1000, at: start)
        #expect(limit.value == 500)
        #expect(limit.room(beside: 480) == 20)
        #expect(limit.room(beside: 900) == 0)
        limit.throttled(inFlight: 999, at: start + .milliseconds(500))
        #expect(limit.value == 500, "the answers of one burst are one request for less")
        limit.throttled(inFlight: 500, at: start + .seconds(1))
        #expect(limit.value == 250)
    }

    @Test func neverFallsBelowOne() {
        var limit = ConcurrencyLimit()
        for second in 0..<20 { limit.throttled(inFlight: 8, at: start + .seconds(second)) }
        #expect(limit.value == 1)
    }

    @Test func growsByOnePerWindowAndIsForgottenWhereItBegan() {
        var limit = ConcurrencyLimit()
        limit.throttled(inFlight: 8, at: start)
        #expect(limit.value == 4)
        var steps: [Int?] = []
        for _ in 0..<4 + 5 + 6 + 7 {
            limit.accepted()
            if steps.last != limit.value { steps.append(limit.value) }
        }
        #expect(steps == [4, 5, 6, 7, nil])
    }

    @Test func growsBackToWhereItFirstFellFrom() {
        var limit = ConcurrencyLimit()
        limit.throttled(inFlight: 8, at: start)
        limit.throttled(inFlight: 4, at: start + .seconds(1))
        #expect(limit.value == 2)
        for _ in 0..<2 + 3 + 4 + 5 + 6 { limit.accepted() }
        #expect(limit.value == 7)
        for _ in 0..<7 { limit.accepted() }
        #expect(limit.value == nil)
    }
}
