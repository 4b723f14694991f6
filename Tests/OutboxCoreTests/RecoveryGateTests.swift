import Testing

@testable import OutboxCore

/// When a lease that looks lapsed may be taken for it, and whose crash it was.
@Suite struct RecoveryGateTests {
    private let start = ContinuousClock.now
    private let time = Timestamp(microseconds: 1_700_000_000_000_000)
    private let name = Identifier(high: 1, low: 1)

    private func at(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test func holdersHaveTheLengthOfALeaseToComeBackButTenSecondsAtMost() {
        let short = RecoveryGate(lease: .seconds(4), now: time, at: start)
        #expect(!short.holdersAreBack(connected: start, at: at(3)))
        #expect(short.holdersAreBack(connected: start, at: at(4)))
        let long = RecoveryGate(lease: .seconds(120), now: time, at: start)
        #expect(!long.holdersAreBack(connected: start, at: at(9)))
        #expect(long.holdersAreBack(connected: start, at: at(10)))
    }

    @Test func aClockThatWasSetStopsRecoveriesForOneLeaseAndNoLapseOfThatTimeIsACrash() {
        var gate = RecoveryGate(lease: .seconds(30), now: time, at: start)
        let first = gate.heard(time, askedAt: start, answeredAt: start)
        #expect(!first && gate.clockIsSteady(at: start))
        let second = gate.heard(time + .seconds(10), askedAt: at(10), answeredAt: at(10))
        #expect(!second && gate.healthySince(connected: time) == time)
        let isSet = gate.heard(time + .seconds(3611), askedAt: at(11), answeredAt: at(11))
        #expect(isSet)
        #expect(!gate.clockIsSteady(at: at(40)))
        #expect(gate.clockIsSteady(at: at(41)))
        #expect(gate.healthySince(connected: time) == time + .seconds(3641))
        #expect(gate.healthySince(connected: time + .seconds(4000)) == time + .seconds(4000))
    }

    /// A lease that was claimed before looks lapsed then, whose worker is well.
    @Test func aClockThatIsSetBeforeTheFirstAnswerIsNoticed() {
        var gate = RecoveryGate(lease: .seconds(30), now: time, at: start)
        let isSet = gate.heard(time + .seconds(60), askedAt: at(1), answeredAt: at(1))
        #expect(isSet && !gate.clockIsSteady(at: at(30)) && gate.clockIsSteady(at: at(31)))
        #expect(gate.healthySince(connected: time) == time + .seconds(90))
    }

    /// However many are lost meanwhile: with five remembered, a claim that was committed late behind them stayed on
    /// lease, unknown to its worker, until it lapsed and counted as a crash.
    @Test func aLostClaimIsAskedForAgainForAMinuteAndOnceAtLeast() {
        var gate = RecoveryGate(lease: .seconds(30), now: time, at: start)
        gate.claimLost(name, at: start)
        let newer = (2...20).map { Identifier(high: 1, low: $0) }
        for claim in newer { gate.claimLost(claim, at: at(30)) }
        gate.adopted(askedAt: at(59))
        #expect(gate.lostClaims == [name] + newer)
        gate.adopted(askedAt: at(60))
        #expect(gate.lostClaims == newer, "also when nobody could be asked for long")
        gate.adopted(askedAt: at(200))
        #expect(gate.lostClaims == [])
    }
}
