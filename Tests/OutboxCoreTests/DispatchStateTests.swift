import OutboxCore
import Testing

@Suite struct DispatchStateTests {
    static let delivered = AttemptResult.Result.outcome(Outcome(.delivered, status: 200))

    @Test func aRowGoesFromClaimToSettleAndItsSlotIsFreed() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(1))
        #expect(scene.sent() == [0])
        #expect(scene.state.inFlight == 1)
        scene.end(0, Self.delivered)
        let flush = try scene.flush()
        #expect(flush.leaving == [1])
        #expect(flush.ledger.map(\.outcome.kind) == [.delivered])
        #expect(flush.ledger.map(\.isFinal) == [true])
        #expect(flush.returns.isEmpty && flush.ends.isEmpty)
        #expect(!scene.state.isIdle)
        #expect(scene.settle(owned: true, ledgerRows: 1, returned: 0) == false)
        #expect(scene.state.isIdle)
        #expect(scene.state.inFlight == 0)
    }

    @Test func sendsNoMoreThanTheTransportTakes() {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(2) }
        scene.claim(scene.single(5))
        #expect(scene.sent() == [0, 1])
        #expect(scene.sent() == [])
        scene.state.updateLane(0) { $0.setCapacity(10) }
        #expect(scene.sent() == [2, 3, 4])
    }

    @Test func startsNoSendThatCouldOutliveItsLease() throws {
        var scene = DispatchScene { $0.recheckAfter = .seconds(60) }
        scene.claim(scene.single(2))
        // Lease 30 s, request timeout 10 s: the last send is at 20 s.
        #expect(scene.sent(at: 20.1) == [])
        let flush = try scene.flush(at: 20.1)
        #expect(flush.leaving == [1, 2])
        #expect(flush.ledger.isEmpty)
        #expect(flush.returns.map(\.attempt) == [0, 0])
        #expect(flush.returns.allSatisfy { $0.delay == .zero && !$0.clearsCrashes })
    }

    @Test func checksAgainWhatWaitedTooLong() throws {
        var scene = DispatchScene()
        let slot = 0
        scene.claim(scene.single(3))
        guard case .check(slot, let targets) = scene.state.nextStep(ofLane: 0, now: scene.at(1.5)) else {
            Issue.record("expected a check")
            return
        }
        #expect(Array(targets) == [0, 1, 2])
        #expect(scene.sent(at: 1.5) == [], "nothing is sent while the check is under way")
        scene.state.checked(
            slot: slot, reasons: [nil, .superseded, .revoked], askedAt: scene.at(1.5), now: scene.at(1.6))
        #expect(scene.sent(at: 1.6) == [0])
        scene.end(0, Self.delivered, at: 1.7)
        let flush = try scene.flush(at: 1.7)
        #expect(flush.leaving == [1, 2, 3])
        #expect(flush.ledger.map(\.outcome.reason).sorted() == ["", "revoked", "superseded"])
        #expect(flush.ends.map(\.status) == [.superseded])
        #expect(flush.ends.map(\.wholeNotification) == [true])
    }

    @Test func nothingIsLetThroughWhenTheCheckFails() throws {
        var scene = DispatchScene()
        let slot = 0
        scene.claim(scene.single(1))
        _ = scene.state.nextStep(ofLane: 0, now: scene.at(2))
        scene.state.checked(slot: slot, reasons: nil, askedAt: scene.at(2), now: scene.at(3))
        #expect(scene.sent(at: 3) == [])
        let flush = try scene.flush(at: 3)
        #expect(flush.returns.map(\.delay) == [.seconds(1)])
    }

    @Test func aDeadlineThatPassedWhileWaitingEndsTheRow() throws {
        var scene = DispatchScene()
        scene.claim([scene.row(targets: 0..<1, lifetime: .seconds(5))])
        #expect(scene.sent() == [0])
        let tag = AttemptTag(slot: 0, target: 0)
        #expect(scene.state.isInTime(tag, at: DispatchScene.start + .seconds(4)))
        #expect(!scene.state.isInTime(tag, at: DispatchScene.start + .seconds(5)))
        scene.state.expired(tag, now: scene.at(5))
        let flush = try scene.flush(at: 5)
        #expect(flush.ledger.map(\.outcome.kind) == [.skipped])
        #expect(flush.ends.map(\.status) == [.expired])
        #expect(flush.ends.map(\.wholeNotification) == [false])
        #expect(scene.state.inFlight == 0)
    }

    @Test func aWrongConfigurationPausesTheLaneOnceAndKeepsTheRows() throws {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(2) }
        scene.claim(scene.single(4))
        #expect(scene.sent() == [0, 1])
        let wrong = AttemptResult.Result.outcome(
            Outcome(.misconfigured, scope: .lane, status: 403, reason: "InvalidProviderToken"))
        scene.end(0, wrong)
        scene.end(1, wrong)
        #expect(
            scene.state.takeAlarms() == [
                .paused(
                    lane: 0, route: nil,
                    LanePause(status: 403, reason: "InvalidProviderToken", duration: .seconds(2400)))
            ],
            "one alarm per pause")
        let flush = try scene.flush()
        #expect(flush.leaving == [1, 2, 3, 4])
        #expect(flush.ledger.count == 2)
        #expect(flush.returns.count == 4)
        #expect(flush.returns.allSatisfy { $0.delay >= .seconds(2400) && $0.attempt == 0 })
        #expect(flush.ends.isEmpty, "a wrong configuration fails nobody")
        #expect(scene.state.takeEffects(limit: 10).isEmpty, "and wipes no device")
        #expect(scene.state.openRoutes(at: scene.at(1)).isEmpty)
        #expect(scene.state.openRoutes(at: scene.at(2401)) == [1])
    }

    @Test func aLaneThatSendsTooMuchPausesForAsLongAsTheProviderSays() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(1))
        _ = scene.sent()
        scene.end(
            0,
            .outcome(
                Outcome(
                    .throttled, scope: .lane, status: 429, reason: "TooManyProviderTokenUpdates",
                    retryFloor: .seconds(300))))
        #expect(
            scene.state.takeAlarms() == [
                .paused(
                    lane: 0, route: nil,
                    LanePause(
                        status: 429, reason: "TooManyProviderTokenUpdates", duration: .seconds(300),
                        doubtsCredential: false))
            ])
        #expect(scene.state.openRoutes(at: scene.at(299)).isEmpty)
        #expect(scene.state.openRoutes(at: scene.at(301)) == [1])
    }

    @Test func aLaneThatIsDownIsNotClaimedForUntilItsReconnectIsDue() {
        var scene = DispatchScene(lanes: 2)
        let retryAt = scene.at(4)
        let lostAt = scene.at(0)
        scene.state.updateLane(0) { $0.disconnected(retryAt: retryAt, because: "refused", at: lostAt) }
        #expect(scene.state.openRoutes(at: scene.at(1)) == [2])
        #expect(scene.state.openRoutes(at: scene.at(4)) == [1, 2])
        scene.state.updateLane(0) { $0.connected() }
        #expect(scene.state.openRoutes(at: scene.at(1)) == [1, 2])
    }

    @Test func targetsOfDifferentFateReturnAtTheEarliest() throws {
        var scene = DispatchScene()
        scene.claim([scene.row(targets: 0..<3)])
        _ = scene.sent()
        scene.end(0, Self.delivered)
        scene.end(1, .outcome(Outcome(.retry, status: 503, retryFloor: .seconds(900))))
        scene.end(2, .fault(.unanswered(reason: "timeout")))
        let flush = try scene.flush()
        #expect(flush.leaving == [1])
        #expect(flush.ledger.map(\.isFinal) == [true, false, false])
        let waits = flush.ledger.compactMap(\.retryAfter)
        #expect(flush.returns.map(\.delay) == [try #require(waits.min())])
        #expect(flush.returns.map(\.attempt) == [1], "an attempt was spent")
    }

    @Test func aStragglerKeepsOnlyItselfOnLease() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(3))
        _ = scene.sent()
        scene.end(0, Self.delivered)
        scene.end(2, Self.delivered)
        let first = try scene.flush()
        #expect(first.leaving == [1, 3])
        #expect(scene.state.takeFlushes(now: scene.at(0), force: true).isEmpty, "one flush of a lease at a time")
        _ = scene.settle(owned: true, ledgerRows: 2, returned: 0)
        #expect(scene.state.heldBatches == 1)
        scene.end(1, Self.delivered)
        let second = try scene.flush()
        #expect(second.leaving == [2])
    }

    @Test func flushesBySizeAndByAge() {
        var scene = DispatchScene { $0.settleRows = 2 }
        scene.claim(scene.single(5))
        _ = scene.sent()
        scene.end(0, Self.delivered)
        #expect(scene.state.takeFlushes(now: scene.at(0), force: false).isEmpty)
        #expect(scene.state.nextFlushAt == scene.at(0.005))
        scene.end(1, Self.delivered)
        #expect(scene.state.takeFlushes(now: scene.at(0), force: false).count == 1)
        _ = scene.settle(owned: true, ledgerRows: 2, returned: 0)
        scene.end(2, Self.delivered)
        #expect(scene.state.takeFlushes(now: scene.at(0.004), force: false).isEmpty)
        #expect(scene.state.takeFlushes(now: scene.at(0.006), force: false).count == 1)
    }

    @Test func aLostLeaseIsNewsOnceAndNothingOfItIsSentAnyMore() throws {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(1) }
        scene.claim(scene.single(3))
        #expect(scene.sent() == [0])
        scene.end(0, Self.delivered)
        _ = try scene.flush()
        #expect(scene.settle(owned: false, ledgerRows: 1, returned: 0) == true)
        scene.state.updateLane(0) { $0.setCapacity(5) }
        #expect(scene.sent() == [])
        _ = try scene.flush()
        #expect(scene.settle(owned: false, ledgerRows: 2, returned: 0) == false)
        #expect(scene.state.isIdle)
    }

    @Test func ourOwnRepeatedFlushIsNoNews() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(1))
        _ = scene.sent()
        scene.end(0, Self.delivered)
        _ = try scene.flush()
        #expect(scene.settle(owned: false, ledgerRows: 0, returned: 0) == false)
    }

    @Test func leasesAreRenewedAtAThirdOfTheirLength() {
        var scene = DispatchScene()
        scene.claim(scene.single(1))
        _ = scene.sent()
        #expect(scene.state.takeRenewals(now: scene.at(9.9)).isEmpty)
        let due = scene.state.takeRenewals(now: scene.at(10))
        #expect(due.count == 1)
        #expect(scene.state.takeRenewals(now: scene.at(10)).isEmpty, "asked for once")
        scene.state.renewed(due, extended: due, askedAt: scene.at(10))
        #expect(scene.state.batch(0)?.leaseEnds == scene.at(40))
        scene.state.renewed(due, extended: [], askedAt: scene.at(20))
        #expect(scene.state.batch(0)?.isLost == true)
    }

    @Test func drainingReleasesWhatWasNotSentAndWaitsForTheRest() throws {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(1) }
        scene.claim(scene.single(3))
        #expect(scene.sent() == [0])
        #expect(scene.state.drain(at: scene.at(1)) == 2)
        #expect(!scene.state.wantsWork(at: scene.at(1)))
        let first = try scene.flush(at: 1)
        #expect(first.leaving == [2, 3])
        #expect(first.ledger.isEmpty)
        _ = scene.settle(owned: true, ledgerRows: 0, returned: 2)
        #expect(!scene.state.isIdle)
        scene.end(0, Self.delivered, at: 2)
        _ = try scene.flush(at: 2)
        _ = scene.settle(owned: true, ledgerRows: 1, returned: 0)
        #expect(scene.state.isIdle)
    }

    @Test func deadTokensAreTakenOffTheRegistryAfterTheAnswer() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(1))
        _ = scene.sent()
        let since = DispatchScene.start + .seconds(-60)
        scene.end(0, .outcome(Outcome(.unregistered, status: 410, deadSince: since, proof: .proven)))
        #expect(scene.state.takeEffects(limit: 10).isEmpty, "not before it is on the ledger")
        _ = try scene.flush()
        _ = scene.settle(owned: true, ledgerRows: 1, returned: 0)
        let effects = scene.state.takeEffects(limit: 10)
        let effect = try #require(effects.first)
        #expect(effect.change == .tokenInvalid)
        #expect(effect.asOf == since)
        #expect(effect.device == 1 && effect.tokenSequence == 1)
    }
}
