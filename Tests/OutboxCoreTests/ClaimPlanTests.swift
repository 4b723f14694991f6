import OutboxCore
import Testing

@Suite struct ClaimPlanTests {
    func waiting(
        _ route: RouteNumber, _ crashClass: CrashClass = .clean, urgency: Int16 = 0, tenant: Int32 = 1,
        due: Double = -1
    ) -> WaitingShare {
        WaitingShare(
            route: route, crashClass: crashClass, share: Share(urgency: urgency, tenant: tenant),
            dueAt: DispatchScene.start + .seconds(due))
    }

    func work(_ shares: WaitingShare...) -> WaitingWork { WaitingWork(now: DispatchScene.start, shares: shares) }

    /// The claim that is planned; its absence fails the test.
    func plan(_ scene: inout DispatchScene, _ work: WaitingWork) throws -> ClaimRequest {
        let claim = scene.state.planClaim(work, now: scene.at(0))
        return try #require(claim).request
    }

    @Test func whatIsNotDueIsNotClaimed() {
        var scene = DispatchScene()
        let notDue = scene.state.planClaim(work(waiting(1, due: 5)), now: scene.at(0))
        #expect(notDue == nil)
        let nothing = scene.state.planClaim(work(), now: scene.at(0))
        #expect(nothing == nil)
    }

    @Test func demandBoundsTheClaim() throws {
        var scene = DispatchScene()
        scene.state.updateLane(0) { $0.setCapacity(7) }
        let claim = try plan(&scene, work(waiting(1)))
        #expect(claim.credits.map(\.rows) == [7])
    }

    @Test func rowsThatSurvivedACrashAreClaimedInSmallBatchesAndSuspectsAlone() throws {
        var scene = DispatchScene()
        let once = try plan(&scene, work(waiting(1, .once)))
        #expect(once.credits.map(\.rows) == [32])
        let suspects = work(waiting(1, .suspect, tenant: 1), waiting(1, .suspect, tenant: 2))
        let alone = try plan(&scene, suspects)
        #expect(alone.credits.map(\.rows) == [1])
    }

    /// Whichever of the two kills the worker, the other one would count its death, again and again.
    @Test func noSuspectIsClaimedBesideAnother() throws {
        var scene = DispatchScene()
        scene.claim([scene.row(targets: 0..<1, crashes: 2)])
        let beside = scene.state.planClaim(work(waiting(1, .suspect)), now: scene.at(0))
        #expect(beside == nil)
        let others = work(waiting(1, .suspect), waiting(1, .once))
        #expect(try plan(&scene, others).crashClass == .once)
        #expect(scene.sent() == [0])
        scene.end(0, .outcome(Outcome(.delivered, status: 200)))
        _ = try scene.flush()
        let unwritten = scene.state.planClaim(work(waiting(1, .suspect)), now: scene.at(0))
        #expect(unwritten == nil, "it is held until its result is written")
        _ = scene.settle(owned: true, ledgerRows: 1, returned: 0)
        #expect(try plan(&scene, work(waiting(1, .suspect))).crashClass == .suspect)
    }

    @Test func routesTakeTurns() throws {
        var scene = DispatchScene(lanes: 3)
        let all = work(waiting(1), waiting(2), waiting(3))
        let routes = try (0..<6).map { _ in try plan(&scene, all).route }
        #expect(Set(routes.prefix(3)).count == 3)
        #expect(Array(routes.prefix(3)) == Array(routes.suffix(3)))
    }

    @Test func batchNamesNeverRepeat() throws {
        var scene = DispatchScene()
        let names = try (0..<1000).map { _ in
            try plan(&scene, work(waiting(1))).batch
        }
        #expect(Set(names).count == 1000)
    }

    @Test func aDrainingWorkerClaimsNothing() {
        var scene = DispatchScene()
        _ = scene.state.drain(at: scene.at(0))
        let claim = scene.state.planClaim(work(waiting(1)), now: scene.at(0))
        #expect(claim == nil)
    }

    @Test func urgentGoesFirstAndBulkKeepsItsShare() {
        let shares = [(0, 1), (0, 2), (1, 1)].map { Share(urgency: Int16($0.0), tenant: Int32($0.1)) }
        let rows = FairShare.divide(10, among: shares, bulkShare: 20, draw: 0.5).map(\.rows)
        #expect(rows == [4, 4, 2])
        #expect(FairShare.divide(10, among: Array(shares.prefix(2)), bulkShare: 20, draw: 0.5).map(\.rows) == [5, 5])
        #expect(FairShare.divide(1, among: shares, bulkShare: 20, draw: 0.2).map(\.share) == [shares[0]])
        #expect(FairShare.divide(1, among: shares, bulkShare: 20, draw: 0.19).map(\.share) == [shares[2]])
    }

    @Test func overManyClaimsBulkHasItsShareWhateverTheirSize() {
        let shares = [Share(urgency: 0, tenant: 1), Share(urgency: 1, tenant: 1)]
        for rows in 1...30 {
            let bulk = (0..<100).reduce(0) { sum, draw in
                let parts = FairShare.divide(rows, among: shares, bulkShare: 20, draw: Double(draw) / 100)
                return sum + parts.filter { $0.share.urgency == 1 }.reduce(0) { $0 + $1.rows }
            }
            #expect(bulk == rows * 20, "100 claims of \(rows) rows")
        }
    }

    @Test func creditsAlwaysSumToTheClaim() {
        var random = SplitMix(seed: 17)
        for _ in 0..<2000 {
            let count = 1 + Int(random.next() % 20)
            let shares = (0..<count).map { Share(urgency: Int16(random.next() % 2), tenant: Int32($0)) }
            let rows = 1 + Int(random.next() % 1000)
            let credits = FairShare.divide(
                rows, among: shares, bulkShare: Int(random.next() % 91), draw: random.fraction())
            #expect(credits.reduce(0) { $0 + $1.rows } == rows)
            #expect(credits.allSatisfy { $0.rows > 0 })
        }
    }
}
