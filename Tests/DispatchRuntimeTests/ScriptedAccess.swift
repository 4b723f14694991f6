import HTTP2
import OutboxCore
import Support
import Synchronization

/// A provider whose access comes and goes as a test says. Refuses each target without a request.
struct ScriptedAccess: PushProvider {
    /// The test's side of it.
    final class Script: Sendable {
        private struct State {
            var access = ProviderAccess.awaited
            var tell: @Sendable (ProviderAccess) -> Void = { _ in }
            var probes: [Bool] = []
        }

        private let state = Mutex(State())
        private let asked = Turnstile(0)

        /// Returns when access was asked for once more.
        func waitForRequest() async { await asked.enter() }

        /// Whether each request for access so far was a probe's.
        var probes: [Bool] { state.withLock { $0.probes } }

        /// What the next request for access is answered with.
        func answer(_ access: ProviderAccess) { state.withLock { $0.access = access } }

        /// Access comes or goes by itself. On the loop.
        func change(_ access: ProviderAccess) {
            answer(access)
            state.withLock { $0.tell }(access)
        }

        func provider(_ tell: @escaping @Sendable (ProviderAccess) -> Void) -> ScriptedAccess {
            state.withLock { $0.tell = tell }
            return ScriptedAccess(script: self)
        }

        fileprivate func authorize(isProbe: Bool) -> ProviderAccess {
            Task { [asked] in await asked.leave() }
            return state.withLock { state in
                state.probes.append(isProbe)
                return state.access
            }
        }
    }

    let script: Script

    var tokenMark: UInt8 { 0 }
    mutating func authorize(now: Int64, isProbe: Bool) -> ProviderAccess { script.authorize(isProbe: isProbe) }
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
