import EventLoop
import HTTP2
import OutboxCore
import Support
import Testing

@testable import DispatchRuntime

/// The dispatcher over a store that follows a script.
@Suite struct DispatcherTests {
    /// Makes no request: every target is let through to nobody.
    private struct SilentProvider: PushProvider {
        var tokenMark: UInt8 { 0 }
        mutating func authorize(now: Int64, isProbe: Bool) -> ProviderAccess { .granted }
        mutating func begin(_ push: OutgoingPush, text: [UInt8], into requests: inout HTTPRequestBatch) -> Outcome? {
            Outcome(.rejected)
        }
        mutating func add(
            _ target: ClaimedTarget, tag: UInt64, text: [UInt8], into requests: inout HTTPRequestBatch
        ) -> Outcome? { Outcome(.rejected) }
        func decode(_ response: HTTPResponse, text: [UInt8]) -> Outcome { Outcome(.rejected) }
        mutating func replaceToken(_ mark: UInt8, because refusal: Outcome, now: Int64) -> TokenReplacement { .refused }
        mutating func reloadCredential(now: Int64) -> Bool? { false }
    }

    private static let kind = Kind(number: 1, name: "scripted", presentation: .raw)

    private func dispatcher(
        on loop: EventLoop, over store: ScriptedStore, lease: Duration = .seconds(30),
        retentionInterval: Duration = .seconds(60), observer: RecordingObserver = RecordingObserver(),
        change: (inout DispatchSettings) -> Void = { _ in }
    ) -> Dispatcher {
        var settings = DispatcherSettings()
        settings.dispatch.lease = lease
        settings.retentionInterval = retentionInterval
        change(&settings.dispatch)
        let lane = LaneConfiguration(
            description: LaneDescription(name: "apns/sandbox/default", pause: .seconds(2400)), serves: { _ in true },
            transport: HTTP2ClientConfiguration(host: "127.0.0.1", port: 1), provider: { _ in SilentProvider() })
        return Dispatcher(
            on: loop, store: store, observer: observer, settings: settings, lanes: [lane],
            now: ScriptedStore.now, seed: 1)
    }

    @Test(.timeLimit(.minutes(1))) func whatIsClaimedWhileTheWorkerStopsIsSettled() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: true)
        let dispatcher = dispatcher(on: loop, over: store)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForClaim()
        await dispatcher.stop()
        await store.answerClaim()
        await run.value
        let settlements = await store.settlements
        #expect(settlements.map(\.leaving) == [[1]])
        #expect(settlements.flatMap(\.ledger).isEmpty, "nothing was sent")
        #expect(settlements.flatMap(\.returns).map(\.attempt) == [0])
        loop.stop()
    }

    @Test(.timeLimit(.minutes(1))) func aRowThatSomebodyHasLockedLetsTheWorkerRest() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: false)
        let dispatcher = dispatcher(on: loop, over: store)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        // It lets go of its keys on the way to sleep; before, it would ask for the row again and again.
        await store.waitForReleaseOfKeys()
        await dispatcher.stop()
        await run.value
        loop.stop()
    }

    /// Any role may notify the channel, as often as it likes. The bounds are of decision 0012, with room for a slow
    /// test.
    @Test(.timeLimit(.minutes(1))) func aFloodOfNotificationsCostsNoMoreStatementsThanTheRationsAllow() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: false)
        let dispatcher = dispatcher(on: loop, over: store)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForReleaseOfKeys()
        let begin = ContinuousClock.now
        let (searches, misses) = (await store.searches, await store.misses)
        let rings = 20_000
        for _ in 0..<rings { await dispatcher.wake() }
        let rations = Int(begin.duration(to: .now) / .milliseconds(5)) + 4 + ShareScan.freeLooks
        let (searched, missed) = (await store.searches - searches, await store.misses - misses)
        #expect(searched >= 1 && searched <= rations, "\(searched) searches, \(rations) rations")
        #expect(missed <= 2 * rations, "\(missed) claims, \(rations) rations")
        #expect(rations < rings / 10, "else it shows nothing")
        await dispatcher.stop()
        await run.value
        loop.stop()
    }

    @Test(.timeLimit(.minutes(1)), arguments: [StoreError.Kind.refused, .transient, .connection])
    func aFlushThatFailsHoldsUpNoOther(kind: StoreError.Kind) async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let refusal = StoreError(kind: kind, operation: "settle", message: "refused by the script")
        let store = ScriptedStore(row: true, refusal: refusal)
        let dispatcher = dispatcher(on: loop, over: store)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        for _ in 0..<2 {
            await store.waitForClaim()
            await store.answerClaim()
        }
        await store.waitForSettle()
        await dispatcher.stop()
        await store.answerClaim()
        await run.value
        let settled = await store.settlements.map(\.batch)
        #expect(settled.count == Set(settled).count && settled.count >= 2, "the first one came through as well")
        loop.stop()
    }

    @Test(.timeLimit(.minutes(1))) func whileTheLedgerCannotBeWrittenNothingMoreIsClaimed() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let full = StoreError(kind: .transient, operation: "settle", message: "no space left, says the script")
        let store = ScriptedStore(row: true, fullRefusal: full)
        let dispatcher = dispatcher(on: loop, over: store)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        for _ in 0..<3 {
            await store.waitForClaim()
            await store.answerClaim()
        }
        // Whatever else is claimed is answered at once.
        for _ in 0..<20 { await store.answerClaim() }
        for _ in 0..<12 { await store.waitForRefusedSettle() }
        // One or two more may have been claimed before the third lease was refused.
        let claims = await store.claims
        #expect(claims <= 6)
        for _ in 0..<6 { await store.waitForRefusedSettle() }
        #expect(await store.claims == claims)
        await store.allowSettles()
        await store.waitForSettle()
        await dispatcher.stop()
        for _ in 0..<20 { await store.answerClaim() }
        await run.value
        loop.stop()
    }

    @Test(.timeLimit(.minutes(1))) func holdersOfLeasesMayReturnBeforeTheyAreRecovered() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: false)
        let lease = Duration.milliseconds(700)
        let dispatcher = dispatcher(on: loop, over: store, lease: lease)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForRecovery()
        #expect(store.connected.duration(to: .now) >= lease)
        await dispatcher.stop()
        await run.value
        loop.stop()
    }

    @Test(.timeLimit(.minutes(1))) func whoAsksWhileHeldRowsAreLookedForHasThemLookedForAgain() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: false, holdsRetries: true)
        let dispatcher = dispatcher(on: loop, over: store)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForRetry()
        await dispatcher.reloadCredentials()
        await store.answerRetry()
        await store.waitForRetry()
        await store.answerRetry()
        await dispatcher.stop()
        await run.value
        loop.stop()
    }

    @Test(
        .timeLimit(.minutes(1)),
        arguments: [(StoreError.Kind.transient, 1...1), (.refused, 1...1), (.connection, 2...100)])
    func heldRowsAreLookedForAgainOnlyWhenTheConnectionFailed(kind: StoreError.Kind, times: ClosedRange<Int>) async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let refusal = StoreError(kind: kind, operation: "retry_held", message: "refused by the script")
        let store = ScriptedStore(row: false, heldRefusal: refusal)
        let dispatcher = dispatcher(on: loop, over: store, lease: .milliseconds(100))
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        for _ in 0..<3 { await store.waitForRecovery() }
        await dispatcher.stop()
        await run.value
        let asked = await store.retriesOfHeld
        #expect(times.contains(asked))
        loop.stop()
    }

    @Test(.timeLimit(.minutes(1))) func aWorkerWhoseClaimsAreAllFullStillLooksForOthers() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: true, kind: Self.kind)
        let dispatcher = dispatcher(on: loop, over: store) { $0.batch = 1 }
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        func claimed() async -> [Int32] {
            await store.waitForClaim()
            let credited = await store.credited
            await store.answerClaim()
            return credited
        }
        for _ in 0..<5 { #expect(await claimed() == [1]) }
        await store.giveWork(to: 2)
        var others = 0
        // A search is rationed by its cost, so some claims go by; without one, all of them would.
        for _ in 0..<20_000 where others == 0 { if await claimed() == [2] { others += 1 } }
        #expect(others == 1)
        await dispatcher.stop()
        await store.answerClaim()
        await run.value
        loop.stop()
    }

    /// The peer takes the connection and says nothing, so the request is open until it is aborted.
    @Test(.timeLimit(.minutes(1))) func aLeaseIsRenewedDuringALongSendAndWhileStopping() async throws {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: true, kind: Self.kind)
        let peer = try SilentPeer()
        var settings = DispatcherSettings()
        settings.dispatch.lease = .milliseconds(1500)
        settings.dispatch.requestTimeout = .milliseconds(100)
        let lane = LaneConfiguration(
            description: LaneDescription(name: "apns/sandbox/default", pause: .seconds(2400)), serves: { _ in true },
            transport: HTTP2ClientConfiguration(host: "127.0.0.1", port: peer.port),
            provider: { _ in ScriptedProvider() })
        let dispatcher = Dispatcher(
            on: loop, store: store, observer: RecordingObserver(), settings: settings, lanes: [lane],
            now: ScriptedStore.now, seed: 1)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForClaim()
        await store.answerClaim()
        // The second lease, which is claimed while the worker stops, is over at once.
        func renewals() async -> Int {
            let renewed = await store.renewed
            return renewed.count { $0 == renewed.first }
        }
        while await renewals() < 3 { await store.waitForRenewal() }
        await dispatcher.stop()
        await store.answerClaim()
        let before = await renewals()
        while await renewals() < before + 3 { await store.waitForRenewal() }
        await dispatcher.stop()
        await run.value
        #expect(await store.settlements.count == 2)
        loop.stop()
    }

    @Test(.timeLimit(.minutes(1))) func aRowWhoseKindCannotBeReadGoesBack() async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let store = ScriptedStore(row: true)
        let dispatcher = dispatcher(on: loop, over: store)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForClaim()
        await store.answerClaim()
        // The second claim is asked for only after the first one's row was looked at.
        await store.waitForClaim()
        await dispatcher.stop()
        await store.answerClaim()
        await run.value
        let returns = await store.settlements.flatMap(\.returns)
        #expect(returns.map(\.delay) == [.seconds(1), .zero], "one without its kind, one while stopping")
        loop.stop()
    }

    /// Whatever becomes of it, leases are renewed, rows are claimed and settled, and it is asked for again.
    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func retentionIsAppliedBesideEverythingElse(fails: Bool) async {
        let loop = EventLoop.startThread(name: "dispatcher")
        let refusal = StoreError(kind: .connection, operation: "retain", message: "refused by the script")
        let store = ScriptedStore(row: true, retentionRefusal: fails ? refusal : nil, kind: Self.kind)
        let observer = RecordingObserver()
        let dispatcher = dispatcher(on: loop, over: store, retentionInterval: .milliseconds(10), observer: observer)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForClaim()
        for _ in 1...3 { await store.waitForRetention() }
        await store.answerClaim()
        await store.waitForRecovery()
        await store.waitForClaim()
        await dispatcher.stop()
        await store.answerClaim()
        await run.value
        #expect(await store.settlements.count == 2)
        // Once, and of this alone: its session is not that of the others.
        #expect(observer.store == (fails ? ["failed: retain"] : []))
        loop.stop()
    }
}
