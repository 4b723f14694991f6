import OutboxCore
import Testing

/// Whose fault an answer is, and who has to wait for it (spec 3.7).
@Suite struct LaneControlTests {
    static let delivered = AttemptResult.Result.outcome(Outcome(.delivered, status: 200))
    static let badToken = AttemptResult.Result.outcome(
        Outcome(.unregistered, status: 400, reason: "BadDeviceToken", proof: .needsProvenLane))
    static let wrongKey = AttemptResult.Result.outcome(
        Outcome(.misconfigured, scope: .lane, status: 403, reason: "InvalidProviderToken"))
    static let wrongTopic = AttemptResult.Result.outcome(
        Outcome(.misconfigured, scope: .topic, status: 400, reason: "TopicDisallowed"))
    static let foreignToken = AttemptResult.Result.outcome(
        Outcome(.misconfigured, scope: .target, status: 403, reason: "SENDER_ID_MISMATCH"))
    static let unavailable = AttemptResult.Result.outcome(
        Outcome(.retry, status: 503, reason: "ServiceUnavailable", retryFloor: .seconds(900)))
    static let throttled = AttemptResult.Result.outcome(
        Outcome(.throttled, status: 429, reason: "TooManyRequests", retryFloor: .seconds(30)))

    /// A lane with two topics (routes 1 and 2) that has claimed `rows` of route 1 and sent them.
    private func scene(_ rows: Int, _ change: (inout DispatchSettings) -> Void = { _ in }) -> DispatchScene {
        var scene = DispatchScene(lanes: 1, change)
        scene.state.updateLane(0) {
            $0.setRoutes([1, 2])
            $0.setCapacity(10_000)
        }
        scene.claim(scene.single(rows))
        _ = scene.sent()
        return scene
    }

    @Test func aStormThatBeganAsAHeldDeviceIsNoSecondAlarm() throws {
        var scene = scene(40)
        for row in 0..<40 { scene.end(row, Self.foreignToken) }
        let alarms = scene.state.takeAlarms()
        // What has woken somebody once does not do so again.
        guard case .held(_, 1, 403, "SENDER_ID_MISMATCH") = try #require(alarms.first), alarms.count == 2,
            case .spread(_, 1, let pause) = alarms[1]
        else { throw Unexpected(alarms) }
        #expect(pause.reason == "SENDER_ID_MISMATCH")
        #expect(scene.state.openRoutes(at: scene.at(1)) == [2])
    }

    private struct Unexpected: Error {
        let alarms: [LaneAlarm]
        init(_ alarms: [LaneAlarm]) { self.alarms = alarms }
    }

    private func pauses(_ alarms: [LaneAlarm]) -> [RouteNumber?] {
        alarms.compactMap { alarm in
            switch alarm {
            case .paused(_, let route, _): .some(route)
            case .spread(_, let route, _): .some(route)
            default: .none
            }
        }
    }

    @Test func aFaultOfTheTopicPausesTheTopicAlone() throws {
        var scene = scene(2)
        scene.end(0, Self.wrongTopic)
        #expect(pauses(scene.state.takeAlarms()) == [1])
        #expect(scene.state.openRoutes(at: scene.at(1)) == [2], "the other topic goes on")
        #expect(scene.state.openRoutes(at: scene.at(2401)) == [1, 2])
        let effects = scene.effects()
        #expect(effects.isEmpty)
    }

    @Test func afterAPauseOneRowIsClaimedAndSentAsAProbe() throws {
        var scene = scene(1)
        scene.end(0, Self.wrongKey)
        _ = scene.state.takeAlarms()
        let work = WaitingWork(
            now: DispatchScene.start + .seconds(2500),
            shares: [
                WaitingShare(
                    route: 1, crashClass: .clean, share: Share(urgency: 0, tenant: 1), dueAt: DispatchScene.start)
            ])
        #expect(scene.state.planClaim(work, now: scene.at(100)) == nil)
        let claimAnswer = scene.state.planClaim(work, now: scene.at(2500))
        let claim = try #require(claimAnswer)
        #expect(claim.request.credits.map(\.rows) == [1])
        let slotAnswer = scene.claim(scene.single(3), at: 2500)
        let slot = try #require(slotAnswer)
        #expect(scene.sent(at: 2500) == [0])
        #expect(scene.sent(at: 2500) == [], "one probe at a time")
        scene.end(0, Self.delivered, at: 2501, slot: slot)
        #expect(scene.state.takeAlarms() == [.resumed(lane: 0, route: nil)])
        #expect(scene.state.openRoutes(at: scene.at(2501)) == [1, 2])
    }

    @Test func aProbeThatIsRefusedProlongsThePauseWithoutANewAlarm() throws {
        var scene = scene(1)
        scene.end(0, Self.wrongKey)
        _ = scene.state.takeAlarms()
        let slotAnswer = scene.claim(scene.single(1), at: 2500)
        let slot = try #require(slotAnswer)
        _ = scene.sent(at: 2500)
        scene.end(0, Self.wrongKey, at: 2501, slot: slot)
        let alarms = scene.state.takeAlarms()
        #expect(pauses(alarms).isEmpty)
        guard case .prolonged(0, nil, _)? = alarms.first else {
            Issue.record("expected a prolonged pause, not \(alarms)")
            return
        }
        #expect(scene.state.openRoutes(at: scene.at(2600)).isEmpty)
    }

    @Test func whatIsInHandGoesBackUnsentWhenAccessIsLost() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(3))
        let (lostAt, retryAt) = (scene.at(0), scene.at(4))
        scene.state.updateLane(0) { $0.accessLost(retryAt: retryAt, because: "timeout", at: lostAt) }
        #expect(scene.sent() == [])
        let flush = try scene.flush()
        #expect(flush.ledger.isEmpty, "nothing was sent")
        #expect(flush.returns.map(\.delay) == [.seconds(4), .seconds(4), .seconds(4)])
        #expect(flush.returns.map(\.attempt) == [0, 0, 0], "no attempt is spent")
        #expect(scene.state.openRoutes(at: scene.at(3)).isEmpty)
    }

    @Test func onlyAPauseThatTheCredentialMayCauseIsProbedWithItReadAgain() throws {
        var scene = scene(1)
        let tooManyTokens = Outcome(
            .throttled, scope: .lane, status: 429, reason: "TooManyProviderTokenUpdates", retryFloor: .seconds(300),
            advice: .keepToken)
        scene.end(0, .outcome(tooManyTokens))
        #expect(!scene.state.lanes[0].probesCredential(1), "reading it again could make another token")
        scene = self.scene(1)
        scene.end(0, Self.wrongKey)
        #expect(scene.state.lanes[0].probesCredential(1))
        scene = self.scene(1)
        scene.end(0, Self.wrongTopic)
        #expect(scene.state.lanes[0].probesCredential(1) && !scene.state.lanes[0].probesCredential(2))
    }

    @Test func anAnswerThatCallsATokenTooOldNamesTheTokenOfItsRequest() throws {
        var scene = scene(1)
        let expired = Outcome(
            .misconfigured, scope: .lane, status: 403, reason: "ExpiredProviderToken", advice: .replaceToken)
        let tag = AttemptTag(slot: 0, target: 0, tokenMark: 200)
        #expect(AttemptTag(number: tag.number) == tag)
        scene.state.ended(
            AttemptResult(
                tag: tag, result: .outcome(expired), attemptedAt: DispatchScene.start, answeredAt: nil),
            policy: nil, now: scene.at(0))
        #expect(scene.state.takeAlarms() == [.replaceToken(lane: 0, mark: 200, expired)])
        let flush = try scene.flush()
        #expect(flush.ledger.map(\.outcome.reason) == ["ExpiredProviderToken"])
        #expect(flush.returns.map(\.attempt) == [0], "no attempt is spent")
        #expect(flush.returns.map(\.delay) == [.zero])
    }

    @Test func anyAnswerThatIsNoConfigurationErrorEndsAPause() throws {
        for answer in [Self.delivered, Self.unavailable, .outcome(Outcome(.rejected, status: 413))] {
            var scene = scene(1)
            scene.end(0, Self.wrongKey)
            let slotAnswer = scene.claim(scene.single(1), at: 2500)
            let slot = try #require(slotAnswer)
            _ = scene.sent(at: 2500)
            scene.end(0, answer, at: 2501, slot: slot)
            #expect(scene.state.openRoutes(at: scene.at(2501)) == [1, 2])
        }
    }

    @Test func oneForeignTokenDelaysNobodyElse() throws {
        var scene = scene(3)
        scene.end(0, Self.foreignToken)
        #expect(
            scene.state.takeAlarms() == [.held(lane: 0, route: 1, status: 403, reason: "SENDER_ID_MISMATCH")])
        scene.end(1, Self.foreignToken)
        #expect(scene.state.takeAlarms().isEmpty, "one alarm per topic and reason")
        scene.end(2, Self.delivered)
        #expect(scene.state.openRoutes(at: scene.at(1)) == [1, 2])
        let flush = try scene.flush()
        #expect(flush.returns.count == 2, "they are held, not failed")
        #expect(flush.returns.allSatisfy { $0.delay >= .seconds(2400) })
        let effects = scene.effects()
        #expect(effects.isEmpty, "and nobody's token is cleared")
    }

    @Test(arguments: [1, 3, 10_000])
    func aWrongEnvironmentClearsNoTokenAndIsToldOnce(devices: Int) throws {
        var scene = scene(devices) { $0.settleRows = 100_000 }
        for device in 0..<devices { scene.end(device, Self.badToken) }
        let alarms = scene.state.takeAlarms()
        #expect(alarms.first == .held(lane: 0, route: 1, status: 400, reason: "BadDeviceToken"))
        #expect(alarms.count == (devices > 20 ? 2 : 1), "more than 20 are a storm, which pauses the topic")
        let flush = try scene.flush()
        #expect(flush.returns.count == devices)
        #expect(flush.ends.isEmpty)
        let effects = scene.effects()
        #expect(effects.isEmpty)
    }

    @Test func inAProvenLaneTheFirstDeadTokensAreClearedAndAStormIsNot() throws {
        var scene = scene(500)
        for target in 0..<50 { scene.end(target, Self.delivered) }
        for target in 50..<500 { scene.end(target, Self.badToken) }
        let cleared = scene.effects().filter { $0.change == .tokenInvalid }.count
        #expect(cleared == 20, "the 21st of 71 answers is one too many")
        #expect(pauses(scene.state.takeAlarms()) == [1])
        #expect(scene.state.openRoutes(at: scene.at(1)) == [2])
    }

    @Test func fewDeadTokensAmongManyGoodOnesAreAllCleared() {
        var scene = scene(1000)
        for target in 0..<1000 { scene.end(target, target % 10 == 9 ? Self.badToken : Self.delivered) }
        let cleared = scene.effects().filter { $0.change == .tokenInvalid }.count
        #expect(cleared == 100)
        #expect(scene.state.takeAlarms().isEmpty)
    }

    @Test func anotherCredentialHasProvenNothing() {
        var scene = scene(2)
        scene.end(0, Self.delivered)
        scene.state.credentialWasRead(lane: 0, isAnother: true, now: scene.at(1))
        scene.end(1, Self.badToken, at: 2)
        let effects = scene.effects(at: 2)
        #expect(effects.allSatisfy { $0.change != .tokenInvalid })
    }

    @Test func whatIsPausedIsTriedAtOnceWhenTheCredentialWasRead() {
        for isAnother in [true, false] {
            var scene = scene(1)
            scene.end(0, Self.wrongKey)
            #expect(scene.state.openRoutes(at: scene.at(60)).isEmpty)
            scene.state.credentialWasRead(lane: 0, isAnother: isAnother, now: scene.at(60))
            #expect(scene.state.openRoutes(at: scene.at(60)) == [1, 2])
        }
    }

    @Test func throttlingOfSingleDevicesStaysTheirs() throws {
        var scene = scene(100)
        for target in 0..<100 { scene.end(target, target < 10 ? Self.throttled : Self.delivered) }
        #expect(scene.state.takeAlarms().isEmpty)
        let flush = try scene.flush()
        #expect(flush.returns.map(\.attempt) == [Int16](repeating: 0, count: 10), "no attempt is spent")
    }

    @Test func throttlingOfNearlyAllIsTheLanes() {
        var scene = scene(100)
        for target in 0..<100 { scene.end(target, Self.throttled) }
        #expect(pauses(scene.state.takeAlarms()) == [nil])
        #expect(scene.state.openRoutes(at: scene.at(29)).isEmpty)
        #expect(scene.state.openRoutes(at: scene.at(31)) == [1, 2])
        #expect(scene.state.lanes[0].limit.value != nil, "and it goes on more slowly")
    }

    @Test func failuresOfAWholeLaneCountAgainstNoDevice() {
        var scene = scene(100)
        for target in 0..<50 { scene.end(target, Self.delivered) }
        for target in 50..<55 { scene.end(target, Self.unavailable) }
        let early = scene.effects().filter { $0.change == .failed }.count
        #expect(early == 5)
        for target in 55..<100 { scene.end(target, Self.unavailable) }
        let late = scene.effects().filter { $0.change == .failed }.count
        #expect(late < 10, "from a fifth of all answers on it is the provider")
    }

    @Test func retriesBeyondTheBudgetGoBackWithNothingSpent() throws {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(1000) }
        scene.claim(scene.single(50), spentAttempts: 1)
        #expect(scene.sent().count == 10, "what a lane may begin with")
        let flush = try scene.flush()
        #expect(flush.leaving.count == 40)
        #expect(flush.ledger.isEmpty)
        #expect(flush.returns.allSatisfy { $0.attempt == 0 && $0.delay >= .seconds(1) })
        for target in 0..<10 { scene.end(target, Self.delivered) }
        scene.claim(scene.single(50), at: 1, spentAttempts: 1)
        #expect(scene.sent(at: 1).count == 20, "each that succeeded lets two go")
    }

    @Test func firstSendsAreNeverHeldBackByTheBudget() {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(5000) }
        scene.claim(scene.single(30), spentAttempts: 1)
        _ = scene.sent()
        scene.claim(scene.single(1000))
        #expect(scene.sent().count == 1000)
    }

    @Test func aForeignTokenIsToldOfInAProvenLaneToo() {
        var scene = scene(2)
        scene.end(0, Self.delivered)
        scene.end(1, Self.foreignToken)
        #expect(
            scene.state.takeAlarms() == [.held(lane: 0, route: 1, status: 403, reason: "SENDER_ID_MISMATCH")])
    }

    @Test func aHeldTargetIsToldOfAgainAfterThePause() throws {
        var scene = scene(1)
        scene.end(0, Self.foreignToken)
        #expect(scene.state.takeAlarms().count == 1)
        for (second, alarms) in [(2300.0, 0), (2500.0, 1)] {
            let claimed = scene.claim(scene.single(1), at: second)
            let slot = try #require(claimed)
            _ = scene.sent(at: second)
            scene.end(0, Self.foreignToken, at: second, slot: slot)
            #expect(scene.state.takeAlarms().count == alarms, "\(second) s after the first")
        }
    }

    @Test func whatLedToATopicsPauseDoesNotLeadToTheNext() throws {
        var scene = scene(40) { $0.stormGuard.window = .seconds(86_400) }
        for target in 0..<40 { scene.end(target, Self.badToken) }
        #expect(pauses(scene.state.takeAlarms()) == [1])
        for (second, answer) in [(2500.0, Self.delivered), (2501.0, Self.badToken)] {
            let claimed = scene.claim(scene.single(1), at: second)
            let slot = try #require(claimed)
            _ = scene.sent(at: second)
            scene.end(0, answer, at: second, slot: slot)
        }
        #expect(scene.state.openRoutes(at: scene.at(2502)) == [1, 2])
        let cleared = scene.effects(at: 2502).filter { $0.change == .tokenInvalid }.count
        #expect(cleared == 1, "the lane is proven, and one dead token is no storm")
    }

    @Test func anotherCredentialIsNotBlamedForWhatTheOldOneDid() throws {
        var scene = scene(21)
        for target in 0..<20 { scene.end(target, Self.badToken) }
        scene.state.credentialWasRead(lane: 0, isAnother: true, now: scene.at(1))
        scene.end(20, Self.badToken, at: 2)
        #expect(pauses(scene.state.takeAlarms()).isEmpty, "the 21st would have been a storm")
    }

    @Test func firstSendsEarnRetries() {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(5000) }
        scene.claim(scene.single(200))
        #expect(scene.sent().count == 200)
        scene.claim(scene.single(50), spentAttempts: 1)
        #expect(scene.sent().count == 18, "a tenth of the first sends, of which a tenth is kept back")
    }
}
