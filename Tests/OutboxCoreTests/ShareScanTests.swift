import Testing

@testable import OutboxCore

/// How the search for shares is rationed, and what is claimed meanwhile.
@Suite struct ShareScanTests {
    private let start = ContinuousClock.now
    private let time = Timestamp(microseconds: 1_700_000_000_000_000)

    private func share(_ tenant: Int32, route: RouteNumber = 1, crashClass: CrashClass = .clean) -> WaitingShare {
        WaitingShare(
            route: route, crashClass: crashClass, share: Share(urgency: 0, tenant: tenant),
            dueAt: time + .seconds(60))
    }

    private func claim(route: RouteNumber) -> ClaimRequest {
        ClaimRequest(
            batch: Identifier(high: 1, low: 1), route: route, crashClass: .clean, credits: [], lease: .seconds(30),
            targetsPerRow: 1)
    }

    private func tenants(_ scan: ShareScan) -> [Int32] { scan.known(at: time, now: start).shares.map(\.share.tenant) }

    @Test func theNextSearchWaitsForTwentyTimesTheCostOfTheLastOne() {
        var scan = ShareScan()
        #expect(scan.untilAllowed(at: start) == nil)
        for (cost, pause) in [
            (Duration.microseconds(100), Duration.milliseconds(5)), (.milliseconds(40), .milliseconds(800)),
            (.seconds(3), .seconds(10)),
        ] {
            for _ in 1...2 { scan.ended([], cost: cost, at: start) }
            #expect(scan.untilAllowed(at: start) == pause)
            #expect(scan.untilAllowed(at: start + pause) == nil)
        }
    }

    @Test func oneSearchThatIsSlowHoldsUpNoOther() {
        var scan = ShareScan()
        for cost in [Duration.milliseconds(300), .milliseconds(1), .milliseconds(500), .milliseconds(2)] {
            scan.ended([], cost: cost, at: start)
            #expect((scan.untilAllowed(at: start) ?? .zero) <= .milliseconds(40))
        }
    }

    @Test func aSearchThatCostsNoMoreThanTheClaimsSinceIsMadeAgain() {
        var scan = ShareScan()
        func searchThenClaim(_ cost: Duration?, claims: [Duration]) -> Duration? {
            scan.ended(cost == nil ? nil : [share(1)], cost: cost ?? .seconds(10), at: start)
            for claim in claims { scan.claimed(cost: claim) }
            return scan.untilAllowed(at: start)
        }
        #expect(searchThenClaim(.milliseconds(5), claims: []) == .milliseconds(5), "one says nothing of the next")
        #expect(searchThenClaim(.milliseconds(5), claims: []) == .milliseconds(100), "no claim came in between")
        #expect(searchThenClaim(.milliseconds(5), claims: [.milliseconds(5)]) == nil)
        #expect(searchThenClaim(.milliseconds(6), claims: [.milliseconds(5)]) == nil, "once says nothing")
        #expect(searchThenClaim(.milliseconds(6), claims: [.milliseconds(5)]) == .milliseconds(120))
        #expect(searchThenClaim(.milliseconds(6), claims: [.milliseconds(5), .milliseconds(1)]) == nil)
        #expect(searchThenClaim(nil, claims: [.milliseconds(50)]) == .seconds(10), "a timeout counts at once")
    }

    @Test func whatHadWorkLatelyIsClaimedFromAsIfItWereDue() {
        var scan = ShareScan()
        scan.ended([share(1)], cost: .milliseconds(1), at: start)
        #expect(scan.known(at: time, now: start).shares.map(\.dueAt) == [time])
        scan.ended([share(2)], cost: .milliseconds(1), at: start)
        #expect(tenants(scan) == [2, 1], "the last found first; a share is not forgotten when it runs empty")
    }

    @Test func eachGroupIsTriedOnceBetweenTwoRests() {
        var scan = ShareScan()
        scan.ended([share(1), share(2), share(1, route: 2)], cost: .milliseconds(1), at: start)
        let afterFirst = scan.othersAreLeft(after: claim(route: 1))
        #expect(afterFirst)
        #expect(scan.known(at: time, now: start).shares.map(\.route) == [2])
        let afterSecond = scan.othersAreLeft(after: claim(route: 2))
        #expect(!afterSecond)
        _ = scan.rest(at: start)
        #expect(tenants(scan) == [1, 2, 1])
    }

    @Test func aLookWithoutASearchOwesOne() {
        var scan = ShareScan()
        for _ in 1...2 { scan.ended([share(1)], cost: .milliseconds(1), at: start) }
        let waits = [0, 8, 30].map { scan.rest(at: start + .milliseconds($0)) }
        #expect(waits == [nil, .milliseconds(12), .zero], "what came after the search was notified")
        scan.ended([], cost: .milliseconds(1), at: start + .milliseconds(30))
        let afterSearch = scan.rest(at: start + .milliseconds(30))
        #expect(afterSearch == nil)
    }

    @Test func looksThatTakeNothingAreRationedByTheirCostFromTheFourth() {
        var scan = ShareScan()
        for _ in 1...2 { scan.ended([share(1)], cost: .milliseconds(400), at: start) }
        func look(_ cost: Duration) -> Duration? {
            scan.missed(cost: cost)
            return scan.rest(at: start)
        }
        let first = (1...3).map { _ in look(.milliseconds(2)) }
        #expect(first == [nil, .seconds(8), .seconds(8)], "the search that is owed")
        #expect(tenants(scan) == [1])
        let fourth = look(.milliseconds(2))
        #expect(fourth == .milliseconds(40), "what came meanwhile is looked for then")
        let between = scan.rest(at: start + .milliseconds(30))
        #expect(between == .milliseconds(10), "a ring in between is not forgotten")
        #expect(scan.known(at: time, now: start + .milliseconds(39)).shares.isEmpty)
        #expect(scan.known(at: time, now: start + .milliseconds(40)).shares.count == 1)
        scan.claimed(cost: .milliseconds(2))
        #expect(tenants(scan) == [1], "one that takes rows ends that")
    }

    @Test func aSearchThatFailsIsNotRepeatedAtOnceAndForgetsNothing() {
        var scan = ShareScan()
        scan.ended([share(1)], cost: .milliseconds(1), at: start)
        scan.ended(nil, cost: .seconds(10), at: start)
        #expect(scan.untilAllowed(at: start) == .seconds(10))
        #expect(tenants(scan) == [1])
    }

    @Test func noMoreSharesAreRememberedThanTheLimit() {
        var scan = ShareScan(limit: 2)
        scan.ended([share(1), share(2), share(3)], cost: .zero, at: start)
        #expect(tenants(scan) == [1, 2])
    }
}
