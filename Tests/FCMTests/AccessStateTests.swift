import FCM
import OutboxCore
import Testing

/// When a token is asked for, which serves, and what is told of it.
@Suite struct AccessStateTests {
    private static let origin = ContinuousClock.now
    private static let refusal = Outcome(.misconfigured, scope: .lane, status: 400, reason: "invalid_grant")
    private static let rejection = Outcome(
        .misconfigured, scope: .lane, status: 401, reason: "UNAUTHENTICATED", advice: .replaceToken)

    private func at(_ seconds: Double) -> ContinuousClock.Instant { Self.origin + .seconds(seconds) }

    /// A state with a token of an hour, asked for at 0.
    private func granted() -> AccessState {
        var state = AccessState()
        state.accountRead([1])
        state.asked()
        state.granted(authorization: "Bearer a", life: .seconds(3600), askedAt: at(0))
        return state
    }

    @Test func `the first token is asked for once, however many lanes wait`() {
        var state = AccessState()
        state.accountRead([1])
        #expect(state.access(at: at(0)) == .awaited)
        #expect(state.wantsToken(at: at(0)))
        state.asked()
        #expect(!state.wantsToken(at: at(0)), "one request at a time")
        #expect(state.nextEvent(after: at(0)) == nil)
        state.granted(authorization: "Bearer a", life: .seconds(3600), askedAt: at(0))
        #expect(state.access(at: at(1)) == .granted)
        #expect(state.token(at: at(1))?.number == 1)
    }

    @Test func `it is asked for anew at half its life and serves until its end`() {
        var state = granted()
        #expect(!state.wantsToken(at: at(1799)))
        #expect(state.nextEvent(after: at(1)) == at(1800))
        #expect(state.wantsToken(at: at(1800)))
        state.asked()
        #expect(state.token(at: at(3589))?.number == 1)
        #expect(state.token(at: at(3590)) == nil, "a little before its end, for what is on its way")
        #expect(state.nextEvent(after: at(1801)) == at(3590))
        state.granted(authorization: "Bearer b", life: .seconds(3600), askedAt: at(1800))
        #expect(state.token(at: at(1801))?.number == 2)
    }

    @Test func `while the endpoint is down the token in use serves, then the lane is down`() {
        var state = granted()
        var waits: [Duration] = []
        var now = at(1800)
        for _ in 0..<9 {
            state.asked()
            state.failed(reason: "503", wait: .zero, jitter: 0, at: now)
            #expect(state.access(at: now) == .granted)
            let next = state.nextEvent(after: now) ?? now
            #expect(!state.wantsToken(at: now) && state.wantsToken(at: next))
            waits.append(now.duration(to: next))
            now = next
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
        state.asked()
        state.failed(reason: "503", wait: .zero, jitter: 0, at: at(3589))
        #expect(state.access(at: at(3590)) == .unavailable(reason: "503", retryAt: at(3649)))
    }

    @Test func `a wait that the endpoint asks for is kept, and jitter only adds`() {
        var state = AccessState()
        state.accountRead([1])
        state.asked()
        state.failed(reason: "429", wait: .seconds(30), jitter: 0.5, at: at(0))
        #expect(state.access(at: at(0)) == .unavailable(reason: "429", retryAt: at(30)))
        state.asked()
        state.failed(reason: "429", wait: .zero, jitter: 0.5, at: at(30))
        guard case .unavailable(_, let retryAt) = state.access(at: at(30)) else {
            Issue.record("expected no access")
            return
        }
        #expect(retryAt > at(32.1) && retryAt < at(32.3), "two seconds and a tenth of them")
    }

    @Test func `a refused account is asked with again by the probe alone`() {
        var state = AccessState()
        state.accountRead([1])
        state.asked()
        state.refused(Self.refusal, at: at(0))
        #expect(state.access(at: at(0)) == .refused(Self.refusal))
        #expect(!state.wantsToken(at: at(9999)) && state.nextEvent(after: at(1)) == nil)
        state.seek(at: at(300))
        #expect(state.access(at: at(300)) == .awaited && state.wantsToken(at: at(300)))
    }

    @Test func `a refusal from before somebody looked after the account is no last word`() {
        var state = AccessState()
        state.accountRead([1])
        state.asked()
        state.lookedAfter()
        state.refused(Self.refusal, at: at(1))
        #expect(state.access(at: at(1)) == .awaited && state.wantsToken(at: at(1)))
        state.asked()
        state.refused(Self.refusal, at: at(2))
        #expect(state.access(at: at(2)) == .refused(Self.refusal), "the next one is")
    }

    @Test func `a wait that the endpoint asks for is kept, whoever has looked after the account`() {
        var state = AccessState()
        state.accountRead([1])
        state.asked()
        state.lookedAfter()
        state.failed(reason: "429", wait: .seconds(30), jitter: 0, at: at(0))
        #expect(state.access(at: at(0)) == .unavailable(reason: "429", retryAt: at(30)))
        #expect(!state.wantsToken(at: at(29)))
    }

    @Test func `a token that comes ends what was wrong before`() {
        for isRefused in [true, false] {
            var state = granted()
            state.asked()
            if isRefused {
                state.refused(Self.refusal, at: at(1800))
            } else {
                state.failed(reason: "503", wait: .zero, jitter: 0, at: at(1800))
            }
            state.asked()
            state.granted(authorization: "Bearer b", life: .seconds(3600), askedAt: at(2100))
            // Nobody asked in time, as after a machine slept.
            #expect(state.access(at: at(9000)) == .awaited && state.wantsToken(at: at(9000)))
        }
    }

    @Test func `a refusal while a token serves waits for the token's end`() {
        var state = granted()
        state.asked()
        state.refused(Self.refusal, at: at(1800))
        #expect(state.access(at: at(1801)) == .granted)
        #expect(!state.wantsToken(at: at(2099)) && state.wantsToken(at: at(2100)))
        #expect(state.access(at: at(3590)) == .refused(Self.refusal))
    }

    @Test func `another account is asked with at once, and the token of the old one serves meanwhile`() {
        var state = granted()
        let same = state.accountRead([1])
        let another = state.accountRead([2])
        #expect(!same && another)
        #expect(state.wantsToken(at: at(10)))
        #expect(state.token(at: at(10))?.number == 1)
        state.asked()
        state.granted(authorization: "Bearer b", life: .seconds(3600), askedAt: at(10))
        #expect(!state.wantsToken(at: at(11)))
        #expect(state.token(at: at(11))?.accountNumber == 2)
    }

    @Test func `what is heard of an account that was exchanged meanwhile is no fault of the new one`() {
        var state = AccessState()
        state.accountRead([1])
        state.asked()
        state.accountRead([2])
        state.refused(Self.refusal, at: at(1))
        #expect(state.access(at: at(1)) == .awaited)
        #expect(state.wantsToken(at: at(1)))
    }

    @Test func `a token that FCM refuses is replaced once`() {
        var state = granted()
        let answer1 = state.replace(1, because: Self.rejection, at: at(60))
        #expect(answer1 == .requested)
        #expect(state.access(at: at(60)) == .awaited && state.wantsToken(at: at(60)))
        let answer2 = state.replace(1, because: Self.rejection, at: at(60))
        #expect(answer2 == .known, "an answer to an older request")
        state.asked()
        state.granted(authorization: "Bearer b", life: .seconds(3600), askedAt: at(60))
        let answer3 = state.replace(1, because: Self.rejection, at: at(61))
        #expect(answer3 == .known)
        let answer4 = state.replace(2, because: Self.rejection, at: at(62))
        #expect(answer4 == .refused)
        #expect(state.access(at: at(62)) == .refused(Self.rejection), "for all lanes of the account")
        state.seek(at: at(400))
        #expect(state.wantsToken(at: at(400)), "the probe asks for another")
    }

    @Test func `half a life later it is replaced again`() {
        var state = granted()
        let answer5 = state.replace(1, because: Self.rejection, at: at(60))
        #expect(answer5 == .requested)
        state.asked()
        state.granted(authorization: "Bearer b", life: .seconds(3600), askedAt: at(60))
        let answer6 = state.replace(2, because: Self.rejection, at: at(1860))
        #expect(answer6 == .requested)
    }

    @Test func `a token is never printed`() {
        let token = AccessToken(
            authorization: "Bearer ya29.secret", number: 1, accountNumber: 1, askedAt: at(0), life: .seconds(3600))
        var dumped = ""
        dump(token, to: &dumped)
        for text in ["\(token)", String(reflecting: token), dumped] { #expect(!text.contains("secret")) }
    }
}
