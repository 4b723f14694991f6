import OutboxCore
import Testing

/// The table of outcomes and what they do (device, dispatch), row by row.
@Suite struct JudgementTests {
    static let now = Timestamp(microseconds: 1_700_000_000_000_000)

    func context(
        spent: Int = 0, proven: Bool = true, healthy: Bool = false, lifetime: Duration = .seconds(86_400),
        jitter: Double = 0, reconnectDelay: Duration = .seconds(3)
    ) -> JudgementContext {
        JudgementContext(
            spentAttempts: spent, policy: .standard, expiresAt: Self.now + lifetime, now: Self.now,
            tokensMayBeCleared: proven, laneIsHealthy: healthy, pause: .seconds(2400), reconnectDelay: reconnectDelay,
            jitter: jitter)
    }

    @Test func anAcceptedPushIsFinalAndNotesSuccess() {
        let judgement = Judgement.of(Outcome(.delivered, status: 200), context())
        #expect(judgement.disposition == .final)
        #expect(judgement.change == .succeeded)
    }

    @Test func aProvenDeadTokenIsFinalAndLeavesTheRegistry() {
        let judgement = Judgement.of(Outcome(.unregistered, status: 410, proof: .proven), context(proven: false))
        #expect(judgement.disposition == .final)
        #expect(judgement.change == .tokenInvalid)
        #expect(judgement.outcome?.kind == .unregistered)
    }

    @Test func anUnprovenDeadTokenIsHeldAndStays() {
        let outcome = Outcome(.unregistered, status: 400, reason: "BadDeviceToken", proof: .needsProvenLane)
        let held = Judgement.of(outcome, context(proven: false))
        #expect(held.disposition == .hold(.seconds(2400)))
        #expect(held.change == nil)
        #expect(held.outcome?.kind == .misconfigured)
        #expect(held.outcome?.reason == "BadDeviceToken")
        let cleared = Judgement.of(outcome, context(proven: true))
        #expect(cleared.disposition == .final)
        #expect(cleared.change == .tokenInvalid)
    }

    @Test func aRejectedMessageFailsAndLeavesTheDeviceAlone() {
        let judgement = Judgement.of(Outcome(.rejected, status: 413), context())
        #expect(judgement.disposition == .failed(.rejected))
        #expect(judgement.change == nil)
    }

    @Test(arguments: [(0, 30), (1, 120), (2, 600), (3, 3600)])
    func aProviderFaultIsRetriedByTheList(spent: Int, seconds: Int) {
        let judgement = Judgement.of(Outcome(.retry, status: 503), context(spent: spent))
        #expect(judgement.disposition == .retry(.seconds(seconds)))
        #expect(judgement.change == nil)
    }

    @Test func aFailureCountsAgainstADeviceOnlyInAHealthyLane() {
        let failure = Outcome(.retry, status: 500)
        #expect(Judgement.of(failure, context(healthy: true)).change == .failed)
        #expect(Judgement.of(failure, context(healthy: false)).change == nil)
        let ofTheConnection = Outcome(.retry, status: 500, advice: .reconnect)
        #expect(Judgement.of(ofTheConnection, context(healthy: true)).change == nil)
    }

    @Test func theLastAttemptOfTheListIsTheCeiling() {
        #expect(Judgement.of(Outcome(.retry), context(spent: 4)).disposition == .failed(.ceiling))
        #expect(Judgement.of(.unanswered(reason: "timeout"), context(spent: 4)).disposition == .failed(.ceiling))
    }

    @Test func theProvidersFloorIsNeverUndercut() {
        let outcome = Outcome(.retry, status: 503, retryFloor: .seconds(900))
        #expect(Judgement.of(outcome, context()).disposition == .retry(.seconds(900)))
        #expect(Judgement.of(outcome, context(spent: 3)).disposition == .retry(.seconds(3600)))
    }

    @Test func jitterOnlyAdds() {
        let judgement = Judgement.of(Outcome(.retry), context(jitter: 0.5))
        #expect(judgement.disposition == .retry(.seconds(33)))
        #expect(Jitter.lengthen(.seconds(10), by: 0) == .seconds(10))
        #expect(Jitter.lengthen(.seconds(10), by: 0.999) < .seconds(12))
    }

    @Test func aRetryPastTheDeadlineIsNotMade() {
        let judgement = Judgement.of(Outcome(.retry), context(lifetime: .seconds(20)))
        #expect(judgement.disposition == .expired(.seconds(30)))
        #expect(!judgement.disposition.isFinal)
    }

    @Test func throttlingWaitsWithoutSpendingAnAttempt() {
        let outcome = Outcome(.throttled, status: 429, retryFloor: .seconds(30))
        #expect(Judgement.of(outcome, context()).disposition == .hold(.seconds(30)))
        #expect(!OutcomeKind.throttled.spendsAttempt)
    }

    @Test func aWrongConfigurationIsHeldForThePause() {
        let outcome = Outcome(.misconfigured, scope: .lane, status: 403, reason: "InvalidProviderToken")
        #expect(Judgement.of(outcome, context()).disposition == .hold(.seconds(2400)))
        let replaced = Outcome(.misconfigured, scope: .lane, status: 403, advice: .replaceToken)
        #expect(Judgement.of(replaced, context()).disposition == .hold(.zero))
    }

    @Test func whatWasSentAndNotAnsweredIsUnknownAndRetried() {
        let judgement = Judgement.of(.unanswered(reason: "timeout"), context())
        #expect(judgement.disposition == .retry(.seconds(30)))
        #expect(judgement.outcome == Outcome(.unknown, reason: "timeout"))
    }

    @Test func whatWasNotSentLeavesNoTraceAndWaitsForTheConnection() {
        let judgement = Judgement.of(.notSent(reason: "goaway"), context())
        #expect(judgement.disposition == .release(.seconds(3)))
        #expect(judgement.outcome == nil)
        #expect(judgement.change == nil)
    }

    @Test func whatWasNotSentNeverComesRoundAtOnce() {
        // Refused over and over on a connection that stands: without a wait the row would turn in circles.
        let judgement = Judgement.of(.notSent(reason: "refused_stream"), context(reconnectDelay: .zero))
        #expect(judgement.disposition == .release(.seconds(1)))
    }

    @Test func whatCannotBeReadLeavesNoTraceAndWaitsNoLongerThanItsDeadline() {
        let judgement = Judgement.of(.kindUnreadable, context())
        #expect(judgement.disposition == .release(.seconds(60)))
        #expect(judgement.outcome == nil && judgement.change == nil)
        #expect(Judgement.of(.kindUnreadable, context(jitter: 0.5)).disposition == .release(.seconds(66)))
        #expect(Judgement.of(.kindUnreadable, context(lifetime: .seconds(9))).disposition == .release(.seconds(9)))
        #expect(Judgement.of(.kindUnreadable, context(lifetime: .seconds(-1))).disposition == .release(.zero))
    }

    @Test func exponentialPoliciesDoubleUpToTheirCap() {
        let policy = RetryPolicy.exponential(base: .seconds(2), cap: .seconds(300))
        let delays = (1...10).map { policy.delay(afterAttempts: $0) }
        #expect(delays == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map { .seconds($0) })
        #expect(policy.delay(afterAttempts: 1000) == .seconds(300))
    }
}
