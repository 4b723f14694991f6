import OutboxCore
import Testing

/// What happens to work that is caught between two states: half a row, a lane that closes, a worker that stops.
@Suite struct DispatchEdgeTests {
    static let delivered = AttemptResult.Result.outcome(Outcome(.delivered, status: 200))

    @Test func aTargetThatGoesBackBeforeItsSiblingIsAnsweredMakesNoFlushDue() throws {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(1) }
        scene.claim([scene.row(targets: 0..<2)])
        #expect(scene.sent() == [0])
        #expect(scene.state.drain(at: scene.at(0)) == 1)
        // A flush that is due and has nothing to write would keep the settling task turning for ever.
        #expect(scene.state.nextFlushAt == nil)
        #expect(!scene.state.hasDueFlush(at: scene.at(1)))
        #expect(scene.state.takeFlushes(now: scene.at(1), force: true).isEmpty)
        scene.end(0, Self.delivered, at: 1)
        #expect(try scene.flush(at: 1).leaving == [1])
    }

    @Test func aLateAnswerTouchesNeitherDeviceNorLane() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(2))
        #expect(scene.sent() == [0, 1])
        // The lease has run out by our own clock, as after a long halt; others may have it.
        scene.end(0, .outcome(Outcome(.unregistered, status: 410, proof: .proven)), at: 31)
        scene.end(
            1, .outcome(Outcome(.misconfigured, scope: .lane, status: 403, reason: "InvalidProviderToken")), at: 31)
        let alarms = scene.state.takeAlarms()
        #expect(alarms.isEmpty)
        #expect(scene.state.lanes[0].isOpen(at: scene.at(31)))
        _ = try scene.flush(at: 31)
        let isNews = scene.settle(owned: false, ledgerRows: 2, returned: 0)
        #expect(isNews)
        #expect(scene.state.takeEffects(limit: 10).isEmpty)
        #expect(scene.state.isIdle)
    }

    @Test func anAnswerAfterALapseThatNobodySawStillReachesTheDevice() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(1))
        _ = scene.sent()
        scene.end(0, .outcome(Outcome(.unregistered, status: 410, proof: .proven)), at: 31)
        _ = try scene.flush(at: 31)
        _ = scene.settle(owned: true, ledgerRows: 1, returned: 0)
        #expect(scene.state.takeEffects(limit: 10).map(\.change) == [.tokenInvalid])
    }

    @Test func pastTheBoundOfResultsNothingIsClaimed() throws {
        var scene = DispatchScene { $0.unsettledLimit = 3 }
        let share = WaitingShare(
            route: 1, crashClass: .clean, share: Share(urgency: 0, tenant: 1), dueAt: DispatchScene.start)
        let work = WaitingWork(now: DispatchScene.start, shares: [share])
        scene.claim(scene.single(3))
        _ = scene.sent()
        scene.end(0, Self.delivered)
        scene.end(1, Self.delivered)
        #expect(scene.state.wantsWork(at: scene.at(0)))
        // Also what goes back without a ledger row has to be written first.
        scene.end(2, .fault(.notSent(reason: "no_route")))
        #expect(!scene.state.wantsWork(at: scene.at(0)))
        #expect(scene.state.openRoutes(at: scene.at(0)).isEmpty)
        let refused = scene.state.planClaim(work, now: scene.at(0))
        #expect(refused == nil)
        _ = try scene.flush()
        #expect(!scene.state.wantsWork(at: scene.at(0)), "being written is not written")
        _ = scene.settle(owned: true, ledgerRows: 2, returned: 1)
        #expect(scene.state.wantsWork(at: scene.at(0)))
        let allowed = scene.state.planClaim(work, now: scene.at(0))
        #expect(allowed != nil)
    }

    @Test func whatIsClaimedWhileStoppingGoesBackUnsent() throws {
        var scene = DispatchScene()
        #expect(scene.state.drain(at: scene.at(0)) == 0)
        scene.claim(scene.single(3))
        #expect(scene.sent() == [])
        let flush = try scene.flush()
        #expect(flush.leaving == [1, 2, 3])
        #expect(flush.ledger.isEmpty)
        #expect(flush.returns.allSatisfy { $0.delay == .zero && $0.attempt == 0 })
    }

    @Test func aLaneThatGoesDownHandsBackWhatItHasNotSent() throws {
        var scene = DispatchScene { $0.recheckAfter = .seconds(60) }
        scene.state.updateLane(0) { $0.setCapacity(1) }
        scene.claim(scene.single(3))
        #expect(scene.sent() == [0])
        let retryAt = scene.at(4)
        let lostAt = scene.at(0)
        scene.state.updateLane(0) { $0.disconnected(retryAt: retryAt, because: "refused", at: lostAt) }
        #expect(scene.sent(at: 1) == [])
        let flush = try scene.flush(at: 1)
        #expect(flush.leaving == [2, 3])
        #expect(flush.returns.map(\.delay) == [.seconds(3), .seconds(3)])
    }

    @Test func whatWasBeingCheckedWhenItsLanePausedGoesBackWithTheAnswer() throws {
        var scene = DispatchScene()
        scene.claim(scene.single(2))
        guard case .check(let slot, _) = scene.state.nextStep(ofLane: 0, now: scene.at(2)) else {
            Issue.record("expected a check")
            return
        }
        scene.state.pause(lane: 0, status: 403, reason: "InvalidProviderToken", now: scene.at(2))
        scene.state.checked(slot: slot, reasons: [nil, nil], askedAt: scene.at(2), now: scene.at(2))
        #expect(scene.sent(at: 2) == [])
        let flush = try scene.flush(at: 2)
        #expect(flush.leaving == [1, 2])
        #expect(flush.returns.map(\.delay) == [.seconds(2400), .seconds(2400)])
    }

    @Test func aCheckThatTookLongerThanItHoldsStillLetsItsTargetsThrough() {
        var scene = DispatchScene { $0.recheckAfter = .zero }
        scene.claim(scene.single(2))
        scene.state.updateLane(0) { $0.setCapacity(1) }
        guard case .check(let slot, _) = scene.state.nextStep(ofLane: 0, now: scene.at(0.1)) else {
            Issue.record("expected a check")
            return
        }
        scene.state.checked(slot: slot, reasons: [nil, nil], askedAt: scene.at(0.1), now: scene.at(0.3))
        #expect(scene.sent(at: 0.301) == [0])
        scene.state.updateLane(0) { $0.setCapacity(1) }
        guard case .check = scene.state.nextStep(ofLane: 0, now: scene.at(0.5)) else {
            Issue.record("what has waited since is checked again")
            return
        }
    }

    @Test func bulkIsNotStarvedByClaimsOfOneRow() throws {
        var scene = DispatchScene { $0.batch = 1 }
        let shares = [Int16(0), 1].map { urgency in
            WaitingShare(
                route: 1, crashClass: .clean, share: Share(urgency: urgency, tenant: 1),
                dueAt: DispatchScene.start + .seconds(-1))
        }
        let work = WaitingWork(now: DispatchScene.start, shares: shares)
        var bulk = 0
        for _ in 0..<100 {
            let claim = scene.state.planClaim(work, now: scene.at(0))
            let credits = try #require(claim).request.credits
            #expect(credits.map(\.rows) == [1])
            bulk += credits.count { $0.share.urgency == 1 }
        }
        #expect((10...30).contains(bulk), "seed 1, a fifth of 100: \(bulk)")
    }

    @Test func everyTenantOfEveryRouteHasItsTurn() throws {
        var scene = DispatchScene(lanes: 2) { $0.batch = 1 }
        let shares = [RouteNumber(1), 2].flatMap { route in
            [Int32(1), 2].map { tenant in
                WaitingShare(
                    route: route, crashClass: .clean, share: Share(urgency: 0, tenant: tenant),
                    dueAt: DispatchScene.start + .seconds(-1))
            }
        }
        let work = WaitingWork(now: DispatchScene.start, shares: shares)
        var served: Set<[Int]> = []
        for _ in 0..<64 {
            let claim = scene.state.planClaim(work, now: scene.at(0))
            let request = try #require(claim).request
            for credit in request.credits { served.insert([Int(request.route), Int(credit.share.tenant)]) }
        }
        #expect(served.count == 4)
    }

    @Test func aMarkStandsBehindTheFurthestRowWhateverTheOrderOfTheAnswer() throws {
        var scene = DispatchScene()
        let rows = scene.single(20)
        scene.claim(rows)
        let share = WaitingShare(
            route: 1, crashClass: .clean, share: Share(urgency: 0, tenant: 1),
            dueAt: DispatchScene.start + .seconds(-1))
        let claim = scene.state.planClaim(
            WaitingWork(now: DispatchScene.start, shares: [share]), now: scene.at(0))
        let mark = try #require(claim).request.credits.first?.mark
        #expect(mark?.notification == rows.map(\.notification).max())
    }

    @Test func aLeaseThatRanOutDuringAnOutageCountsAsOursUntilTheDatabaseSaysOtherwise() {
        var scene = DispatchScene()
        scene.claim(scene.single(1))
        #expect(scene.sent() == [0])
        #expect(!scene.state.holdsLapsedLease(at: scene.at(29)))
        #expect(scene.state.holdsLapsedLease(at: scene.at(30)))
        let asked = scene.state.takeRenewals(now: scene.at(31))
        scene.state.renewed(asked, extended: asked, askedAt: scene.at(31))
        #expect(!scene.state.holdsLapsedLease(at: scene.at(32)))
        scene.state.renewed(asked, extended: [], askedAt: scene.at(62))
        #expect(!scene.state.holdsLapsedLease(at: scene.at(62)), "somebody else has it")
    }

    @Test func anIdleLaneDoesNotSpeakForABusyOne() {
        var scene = DispatchScene(lanes: 2)
        #expect(scene.state.wantsWork(lane: 0, at: scene.at(0)))
        scene.state.updateLane(0) { $0.setCapacity(0) }
        #expect(!scene.state.wantsWork(lane: 0, at: scene.at(0)))
        #expect(scene.state.wantsWork(lane: 1, at: scene.at(0)))
        #expect(scene.state.wantsWork(at: scene.at(0)))
        scene.state.updateLane(1) { $0.setRoutes([]) }
        #expect(!scene.state.wantsWork(at: scene.at(0)), "a lane without routes has nothing to claim")
    }
}
