import EventLoop
import HTTP2
import OutboxCore
import Testing

@testable import DispatchRuntime

/// Lanes whose access comes over the wire, and comes and goes like a connection.
@Suite struct LaneAccessTests {
    private let loop = EventLoop.startThread(name: "access")
    private let store = ScriptedStore(row: true)
    private let script = ScriptedAccess.Script()
    private let observer = RecordingObserver()

    private func dispatcher() -> Dispatcher {
        var settings = DispatcherSettings()
        settings.poll = .milliseconds(5)
        let lane = LaneConfiguration(
            description: LaneDescription(name: "fcm/production/default", pause: .milliseconds(50)),
            serves: { _ in true }, transport: HTTP2ClientConfiguration(host: "127.0.0.1", port: 1),
            provider: { [script] in script.provider($0) })
        return Dispatcher(
            on: loop, store: store, observer: observer, settings: settings, lanes: [lane], now: ScriptedStore.now,
            seed: 1)
    }

    private func stop(_ dispatcher: Dispatcher, _ run: Task<Void, Never>) async {
        await dispatcher.stop()
        await store.answerClaim()
        await run.value
        loop.stop()
    }

    private func change(_ access: ProviderAccess) async {
        await Task(executorPreference: loop) { [script] in script.change(access) }.value
    }

    @Test(.timeLimit(.minutes(1))) func nothingIsClaimedBeforeAccessIsGranted() async {
        let dispatcher = dispatcher()
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        // Several rounds of the claiming task, with a due row in the queue.
        for _ in 0..<3 { await script.waitForRequest() }
        #expect(await store.claims == 0)
        await change(.granted)
        await store.waitForClaim()
        #expect(observer.lanes.isEmpty, "waiting for the first token is no news")
        #expect(script.probes.allSatisfy { !$0 })
        await stop(dispatcher, run)
    }

    @Test(.timeLimit(.minutes(1))) func aLaneWithoutAccessIsDownAndItsRowsGoBackUnsent() async {
        let dispatcher = dispatcher()
        script.answer(.granted)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForClaim()
        await change(.unavailable(reason: "timeout", retryAt: .now + .seconds(30)))
        await store.answerClaim()
        await store.waitForSettle()
        let settlement = await store.settlements.first
        #expect(settlement?.ledger.isEmpty == true, "nothing was sent")
        #expect(settlement?.returns.map(\.attempt) == [0])
        #expect(settlement.map { $0.returns.allSatisfy { $0.delay > .seconds(20) } } == true, "due with the next try")
        let claims = await store.claims
        #expect(observer.lanes == ["down: no access token: timeout"])
        await change(.granted)
        await store.waitForClaim()
        #expect(claims == 1)
        #expect(observer.lanes == ["down: no access token: timeout", "up"])
        await stop(dispatcher, run)
    }

    @Test(.timeLimit(.minutes(1))) func anotherCredentialMakesDueWhatTheOldOneStopped() async {
        let dispatcher = dispatcher()
        script.answer(.granted)
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await store.waitForRetry()
        await store.waitForClaim()
        await change(.granted(byAnotherCredential: true))
        await store.waitForRetry()
        #expect(observer.lanes == ["another credential"])
        await stop(dispatcher, run)
    }

    @Test(.timeLimit(.minutes(1))) func refusedAccessPausesTheLaneAndItsProbeAsksAnew() async {
        let dispatcher = dispatcher()
        let run = Task(executorPreference: loop) { await dispatcher.run() }
        await script.waitForRequest()
        await change(.refused(Outcome(.misconfigured, scope: .lane, status: 400, reason: "invalid_grant")))
        let before = script.probes.count
        // Still refused when the pause is over, and once more.
        while observer.lanes.count < 3 { await script.waitForRequest() }
        let told = ["paused: invalid_grant", "prolonged: invalid_grant", "prolonged: invalid_grant"]
        #expect(Array(observer.lanes.prefix(3)) == told)
        #expect(script.probes.dropFirst(before).allSatisfy { $0 }, "a probe reads the credential again")
        #expect(await store.claims == 0)
        script.answer(.granted)
        await store.waitForClaim()
        await stop(dispatcher, run)
    }
}
