import OutboxCore
import Testing

@Suite struct LaneGateTests {
    let start = ContinuousClock.now
    let cause = LanePause(status: 403, reason: "InvalidProviderToken", duration: .seconds(2400))

    @Test func letsEverythingPassUntilAFaultOfAllComes() {
        var gate = LaneGate()
        #expect(gate.allowance(at: start) == .max)
        #expect(gate.close(cause, at: start) == .began)
        #expect(gate.allowance(at: start) == 0)
        #expect(gate.close(cause, at: start + .seconds(1)) == .known, "the requests that were in flight say the same")
        #expect(gate.allowance(at: start + .seconds(2399)) == 0)
    }

    @Test func oneProbeGoesOutWhenThePauseHasEnded() {
        var gate = LaneGate()
        _ = gate.close(cause, at: start)
        let over = start + .seconds(2400)
        #expect(gate.allowance(at: over) == 1)
        gate.passed(1)
        #expect(gate.allowance(at: over) == 0)
        gate.ended()
        #expect(gate.allowance(at: over) == 1, "a probe without an answer is repeated")
    }

    @Test func aRefusedProbeMakesThePauseLongerAndIsNoNewPause() {
        var gate = LaneGate()
        _ = gate.close(cause, at: start)
        let over = start + .seconds(2400)
        gate.passed(1)
        gate.ended()
        #expect(gate.close(cause, at: over) == .prolonged)
        #expect(gate.pause?.since == start)
        #expect(gate.allowance(at: over + .seconds(2399)) == 0)
        #expect(gate.allowance(at: over + .seconds(2400)) == 1)
    }

    @Test func anAnswerToAProbeOpensItAndAStragglerDoesNot() {
        var gate = LaneGate()
        _ = gate.close(cause, at: start)
        let straggler = gate.answered(at: start + .seconds(1))
        #expect(!straggler, "it was sent before the pause")
        #expect(gate.allowance(at: start + .seconds(1)) == 0)
        let probe = gate.answered(at: start + .seconds(2401))
        #expect(probe)
        #expect(gate.allowance(at: start + .seconds(2401)) == .max)
        let later = gate.answered(at: start + .seconds(2402))
        #expect(!later, "the end of a pause is told once")
    }

    @Test func whoLookedAfterItIsProbedForAtOnce() {
        var gate = LaneGate()
        gate.probeSoon(at: start)
        #expect(gate.pause == nil)
        _ = gate.close(cause, at: start)
        gate.probeSoon(at: start + .seconds(60))
        #expect(gate.allowance(at: start + .seconds(60)) == 1)
    }
}
