import Testing

@testable import OutboxCore

/// Rows of a kind that has hooks wait for their answer, and nothing else does.
struct HookTests {
    private static let hooked: KindNumber = 7
    private static let fault = HookFault(.stale, .raised, sqlState: "22012")
    private static let stale = KindHook(kind: "hooked", purpose: .stale, timeout: .seconds(2))
    private static let access = KindHook(kind: "hooked", purpose: .access, timeout: .seconds(2))

    private func scene(_ hooks: [KindHook] = [Self.stale]) -> DispatchScene {
        var scene = DispatchScene()
        set(hooks, &scene)
        return scene
    }

    @discardableResult
    private func set(_ hooks: [KindHook], _ scene: inout DispatchScene, at seconds: Double = 0) -> [HookAlarm] {
        let kinds = [
            Kind(number: 1, name: "plain", presentation: .raw),
            Kind(number: Self.hooked, name: "hooked", presentation: .raw),
            Kind(number: 8, name: "other", presentation: .raw),
        ]
        return scene.state.setHooks(hooks, kinds: kinds, now: scene.at(seconds))
    }

    /// Rows of one target each, whose kinds are these.
    private func rows(_ scene: DispatchScene, _ kinds: KindNumber..., lifetime: Duration = .seconds(86_400))
        -> [ClaimedDispatch]
    {
        kinds.enumerated().map { index, kind in
            scene.row(targets: index..<index + 1, lifetime: lifetime, kind: kind, seed: UInt64(index))
        }
    }

    private func asked(_ scene: inout DispatchScene, at seconds: Double = 0) throws -> HookCall {
        let call = scene.state.nextHookCall(now: scene.at(seconds))
        return try #require(call)
    }

    /// Answers a call; `conditions` for all of its parts.
    @discardableResult
    private func answer(
        _ call: HookCall, _ scene: inout DispatchScene, stale: [Identifier] = [], conditions: HookConditions = .young,
        askedAt: Double = 0, at seconds: Double = 0
    ) throws -> HookAlarm? {
        let verdicts = try HookVerdicts([HookReply(.stale, stale)], asked: call.notifications)
        return scene.state.hooksAnswered(
            call, verdicts, conditions: call.parts.map { _ in conditions }, askedAt: scene.at(askedAt),
            answeredAt: scene.at(seconds), now: scene.at(seconds))
    }

    @Test func `Rows of other kinds go out at once, hooked ones after the answer`() throws {
        var scene = scene()
        let claimed = rows(scene, 1, Self.hooked, 1, Self.hooked)
        scene.claim(claimed)
        #expect(scene.sent() == [0, 2])
        #expect(scene.sent() == [])
        let call = try asked(&scene)
        #expect(call.notifications == [claimed[1].notification, claimed[3].notification] && call.hooks == [Self.stale])
        #expect(scene.state.nextHookCall(now: scene.at(0)) == nil, "one call at a time")
        #expect(scene.sent() == [])
        #expect(try answer(call, &scene, stale: [claimed[1].notification]) == nil)
        #expect(scene.sent() == [3])
        for target in [0, 2, 3] { scene.end(target, .outcome(Outcome(.delivered, status: 200))) }
        let flush = try scene.flush()
        let over = flush.ledger.first { $0.outcome.kind == .skipped }
        #expect(over?.notification == claimed[1].notification && over?.outcome.reason == "superseded")
        #expect(flush.ends.map(\.status) == [.superseded] && flush.ends.map(\.wholeNotification) == [true])
        #expect(flush.leaving == [1, 2, 3, 4] && flush.returns.isEmpty)
    }

    @Test func `What a principal may not see any more ends as superseded for want of access`() throws {
        var scene = scene([Self.stale, Self.access])
        let claimed = rows(scene, Self.hooked, Self.hooked, Self.hooked)
        scene.claim(claimed)
        let call = try asked(&scene)
        let verdicts = try HookVerdicts(
            [
                HookReply(.stale, [claimed[2].notification, claimed[2].notification]),
                HookReply(.access, [claimed[0].notification]),
            ], asked: call.notifications)
        _ = scene.state.hooksAnswered(
            call, verdicts, conditions: [.young], askedAt: scene.at(0), answeredAt: scene.at(0), now: scene.at(0))
        #expect(scene.sent() == [0])
        let flush = try scene.flush()
        #expect(flush.ends.map(\.reason) == [.noAccess, .superseded])
    }

    @Test func `An answer about what was not asked is no answer`() {
        let asked = [Identifier(high: 1, low: 1)]
        for foreign in [nil, Identifier(high: 2, low: 2)] {
            #expect(throws: HookFault(.access, .foreignAnswer)) {
                try HookVerdicts([HookReply(.access, [asked[0], foreign])], asked: asked)
            }
        }
    }

    @Test func `Rows of a failing hook go back with nothing spent, and the wait grows`() throws {
        var scene = scene()
        var waits: [Duration] = []
        var now = 0.0
        for failure in 0..<8 {
            scene.claim(rows(scene, 1, Self.hooked), at: now)
            let call = try asked(&scene, at: now)
            let alarm = scene.state.hooksFailed(call, Self.fault, now: scene.at(now))
            if case .failing(let kind, let fault, _) = alarm {
                #expect(failure == 0 && kind == "hooked" && fault == Self.fault)
            } else {
                #expect(failure > 0, "the beginning is told once")
            }
            #expect(scene.sent(at: now) == [0], "another kind goes on")
            scene.end(0, .outcome(Outcome(.delivered, status: 200)), at: now)
            let flush = try scene.flush(at: now)
            #expect(flush.ledger.count == 1 && flush.returns.count == 1)
            #expect(flush.returns[0].position == 2 && flush.returns[0].attempt == 0)
            waits.append(flush.returns[0].delay)
            _ = scene.settle(owned: true, ledgerRows: 1, returned: 1)
            now += 75
        }
        for (wait, least) in zip(waits, [1, 2, 4, 8, 16, 32, 60, 60]) {
            #expect(wait >= .seconds(least) && wait <= .seconds(least) * 1.2)
        }
        #expect(scene.state.lanes[0].isOpen(at: scene.at(now)) && scene.state.lanes[0].inFlight == 0)
    }

    @Test func `While a hook fails its rows go back at once, until it is asked again`() throws {
        var scene = scene()
        scene.claim(rows(scene, Self.hooked))
        _ = scene.state.hooksFailed(try asked(&scene), Self.fault, now: scene.at(0))
        _ = try scene.flush()
        _ = scene.settle(owned: true, ledgerRows: 0, returned: 1)
        scene.claim(rows(scene, Self.hooked, 1), at: 0.5)
        #expect(scene.state.nextHookCall(now: scene.at(0.5)) == nil)
        #expect(scene.sent(at: 0.5) == [1])
        let flush = try scene.flush(at: 0.5)
        #expect(flush.returns.count == 1 && flush.returns[0].delay > .milliseconds(400))
        scene.claim(rows(scene, Self.hooked), at: 2)
        let call = try asked(&scene, at: 2)
        #expect(scene.state.hookReports.map(\.kind) == ["hooked"])
        let alarm = try answer(call, &scene, askedAt: 2, at: 2)
        #expect(alarm == .answers(kind: "hooked", after: .seconds(2)))
        #expect(scene.sent(at: 2) == [0] && scene.state.hookReports.isEmpty)
    }

    @Test func `A row never waits beyond its deadline`() throws {
        var scene = scene()
        scene.claim(rows(scene, Self.hooked, lifetime: .milliseconds(300)))
        _ = scene.state.hooksFailed(try asked(&scene), Self.fault, now: scene.at(0))
        #expect(try scene.flush().returns.map(\.delay) == [.milliseconds(300)])
    }

    @Test func `An answer that has grown too old is asked for again, with the facts of the claim`() throws {
        var scene = scene()
        let claimed = rows(scene, Self.hooked, Self.hooked)
        scene.claim(claimed)
        let first = try asked(&scene)
        #expect(scene.state.conditionsToCheck(first.parts[0], of: first, now: scene.at(0.5)) == nil)
        try answer(first, &scene, at: 0.5)
        scene.state.updateLane(0) { $0.setCapacity(1) }
        #expect(scene.sent(at: 0.9) == [0], "the answer holds for as long as any check")
        scene.state.updateLane(0) { $0.setCapacity(100) }
        #expect(scene.sent(at: 1.1) == [])
        let second = try asked(&scene, at: 1.1)
        #expect(second.notifications == [claimed[1].notification])
        let due = scene.state.conditionsToCheck(second.parts[0], of: second, now: scene.at(1.2))
        let conditions = try #require(due)
        #expect(conditions.targets.map(\.notification) == [claimed[1].notification])
        try answer(
            second, &scene, conditions: .answered([.revoked], askedAt: scene.at(1.2)), askedAt: 1.1, at: 1.3)
        #expect(scene.sent(at: 1.3) == [])
        let skipped = try scene.flush(at: 1.3).ledger
        #expect(skipped.map(\.outcome.reason) == ["revoked"])
    }

    @Test func `What a slow hook has let through may be sent, or nothing of it ever would`() throws {
        var scene = scene()
        scene.claim(rows(scene, Self.hooked))
        let call = try asked(&scene)
        try answer(call, &scene, conditions: .answered([nil], askedAt: scene.at(1.9)), at: 1.95)
        #expect(scene.sent(at: 1.96) == [0])
    }

    @Test func `Rows whose facts cannot be evaluated again go back, and that is not the hook's fault`() throws {
        var scene = scene()
        scene.claim(rows(scene, Self.hooked))
        #expect(try answer(try asked(&scene), &scene, conditions: .failed) == nil)
        #expect(scene.sent() == [] && scene.state.hookReports.isEmpty)
        #expect(try scene.flush().returns.map(\.delay) == [.seconds(1)])
    }

    @Test func `A hook that is set later is asked about what is held, and one that is removed is not`() throws {
        var scene = DispatchScene()
        scene.claim(rows(scene, 1, Self.hooked))
        #expect(scene.state.nextHookCall(now: scene.at(0)) == nil)
        set([Self.stale], &scene)
        #expect(scene.sent() == [0])
        let call = try asked(&scene)
        _ = scene.state.hooksFailed(call, Self.fault, now: scene.at(0))
        #expect(set([], &scene, at: 3) == [.answers(kind: "hooked", after: .seconds(3))])
        scene.claim(rows(scene, Self.hooked), at: 3)
        #expect(scene.sent(at: 3) == [0])
        #expect(scene.state.nextHookCall(now: scene.at(3)) == nil)
    }

    @Test func `A stop puts back what is being asked about, and the answer changes nothing`() throws {
        var scene = scene()
        scene.claim(rows(scene, Self.hooked, Self.hooked))
        let call = try asked(&scene)
        #expect(scene.state.drain(at: scene.at(0)) == 2)
        let flush = try scene.flush()
        #expect(flush.returns.count == 2 && flush.returns.allSatisfy { $0.attempt == 0 && $0.delay == .zero })
        try answer(call, &scene, stale: call.notifications)
        _ = scene.settle(owned: true, ledgerRows: 0, returned: 2)
        #expect(scene.state.isIdle)
    }

    @Test func `A closed lane keeps nothing that waits for a hook`() throws {
        var scene = scene()
        scene.claim(rows(scene, Self.hooked))
        _ = try asked(&scene)
        let (now, later) = (scene.at(0), scene.at(5))
        scene.state.updateLane(0) { $0.disconnected(retryAt: later, because: "gone", at: now) }
        #expect(scene.sent() == [])
        #expect(try scene.flush().returns.count == 1)
    }

    @Test func `Rows that wait for a hook leave their lane free for others, up to a bound`() throws {
        var scene = scene()
        let free = scene.state.demand(ofLane: 0, at: scene.at(0))
        let many = (0..<1500).map { scene.row(targets: $0..<$0 + 1, kind: Self.hooked, seed: UInt64($0)) }
        scene.claim(many)
        #expect(scene.state.demand(ofLane: 0, at: scene.at(0)) == free)
        scene.claim(many, at: 0.1)
        let flush = try scene.flush(at: 0.1)
        #expect(flush.returns.count == 1500 && flush.returns.allSatisfy { $0.delay > .seconds(2) })
        let call = try asked(&scene)
        #expect(call.notifications.count == 1500)
        try answer(call, &scene)
        #expect(scene.state.demand(ofLane: 0, at: scene.at(0)) == max(0, free - 1500))
    }

    @Test func `Each kind is asked by itself, and those that fail leave calls for the others`() throws {
        var scene = DispatchScene()
        let kinds = (1...8).map { Kind(number: $0, name: "k\($0)", presentation: .raw) }
        let hooks = kinds.map { KindHook(kind: $0.name, purpose: .stale, timeout: .seconds(2)) }
        _ = scene.state.setHooks(hooks, kinds: kinds, now: scene.at(0))
        func claimAll(_ scene: inout DispatchScene, at seconds: Double) {
            let all = (0..<8).map { scene.row(targets: $0..<$0 + 1, kind: KindNumber($0 + 1), seed: UInt64($0)) }
            scene.claim(all, at: seconds)
        }
        claimAll(&scene, at: 0)
        var calls: [HookCall] = []
        while let call = scene.state.nextHookCall(now: scene.at(0)) { calls.append(call) }
        #expect(calls.map { $0.hooks[0].kind } == ["k1", "k2", "k3", "k4"])
        for call in calls { _ = scene.state.hooksFailed(call, Self.fault, now: scene.at(0)) }
        // The four that failed are due again, and hang: two calls at most are theirs.
        claimAll(&scene, at: 5)
        calls = []
        while let call = scene.state.nextHookCall(now: scene.at(5)) { calls.append(call) }
        #expect(calls.map { $0.hooks[0].kind } == ["k5", "k6", "k7", "k8"])
        for call in calls { try answer(call, &scene, askedAt: 5, at: 5) }
        calls = []
        while let call = scene.state.nextHookCall(now: scene.at(5)) { calls.append(call) }
        #expect(calls.map { $0.hooks[0].kind } == ["k1", "k2"])
    }
}
