import Credentials
import FCM
import FakeProviders
import OutboxCore
import Testing

/// Access tokens over the wire: real TLS and HTTP/2, assertions that the stand-in verifies.
@Suite(.timeLimit(.minutes(2))) struct FCMAccessTests {
    @Test func `the first token is asked for once, and messages are sent with it`() async throws {
        try await FCMExchange.with { exchange in
            var other = try await exchange.anotherLane()
            #expect(await exchange.authorize() == .awaited)
            #expect(await exchange.isAwaited(&other))
            #expect(await exchange.nextAccess(after: 0) == .granted)
            #expect(await exchange.send().kind == .delivered)
            let statistics = await exchange.endpoint.statistics
            #expect(statistics.granted == 1 && statistics.requests == 1, "one request for all lanes")
            let seen = await exchange.service.requests
            #expect(seen.map(\.status) == [200])
            #expect(await exchange.accesses == [.granted])
        }
    }

    @Test func `it is made anew at half its life, and access never ends`() async throws {
        try await FCMExchange.with { exchange in
            await exchange.endpoint.setLifetime(2)
            #expect(await exchange.begin() == .granted)
            _ = await exchange.endpoint.requests(reaching: 3, within: .seconds(60))
            #expect(await exchange.send().kind == .delivered)
            #expect(await exchange.accesses == [.granted])
        }
    }

    @Test func `while the endpoint is down the token in use serves`() async throws {
        try await FCMExchange.with { exchange in
            await exchange.endpoint.setLifetime(8)
            #expect(await exchange.begin() == .granted)
            await exchange.endpoint.misbehave(.down)
            _ = await exchange.endpoint.requests(reaching: 2, within: .seconds(60))
            #expect(await exchange.send().kind == .delivered)
            await exchange.endpoint.behave()
            _ = await exchange.endpoint.requests(reaching: 3, within: .seconds(60))
            #expect(await exchange.send().kind == .delivered)
            #expect(await exchange.accesses == [.granted])
        }
    }

    @Test(arguments: [TokenEndpointAnswer.down, .page(status: 502), .cutOff, .tooManyRequests(nil)])
    func `without a token nothing is sent, and the endpoint is asked until it answers`(
        answer: TokenEndpointAnswer
    ) async throws {
        try await FCMExchange.with { exchange in
            await exchange.endpoint.misbehave(answer)
            guard case .unavailable(let reason, let retryAt) = await exchange.begin() else {
                Issue.record("expected no access")
                return
            }
            #expect(exchange.reported == [reason])
            #expect(retryAt > .now - .seconds(60))
            #expect(await exchange.send() == nil)
            await exchange.endpoint.behave()
            var count = 1
            while await exchange.nextAccess(after: count) != .granted { count += 1 }
            #expect(await exchange.send().kind == .delivered)
        }
    }

    @Test func `an endpoint that cannot be reached is named`() async throws {
        try await FCMExchange.with { exchange in
            await exchange.endpoint.stop()
            guard case .unavailable(let reason, _) = await exchange.begin() else {
                Issue.record("expected no access")
                return
            }
            #expect(reason.contains("localhost") && reason.contains("connect"))
        }
    }

    @Test func `a refused account pauses the lane, and the probe asks anew`() async throws {
        try await FCMExchange.with { exchange in
            await exchange.endpoint.misbehave(.invalidGrant("Invalid JWT Signature."))
            guard case .refused(let outcome) = await exchange.begin() else {
                Issue.record("expected a refusal")
                return
            }
            #expect(outcome == Outcome(.misconfigured, scope: .lane, status: 400, reason: "invalid_grant"))
            #expect(exchange.reported.count == 1)
            #expect(exchange.reported.allSatisfy { $0.contains("make a new key") })
            await exchange.endpoint.behave()
            let count = await exchange.accesses.count
            #expect(await exchange.authorize(isProbe: true) == .awaited)
            var next = count
            while await exchange.nextAccess(after: next) != .granted { next += 1 }
            #expect(await exchange.send().kind == .delivered)
        }
    }

    @Test(arguments: [7200, -7200] as [Int64])
    func `a clock that is off is told from a wrong key`(seconds: Int64) async throws {
        try await FCMExchange.with { exchange in
            await exchange.endpoint.setClock(ahead: seconds)
            guard case .refused(let outcome) = await exchange.begin() else {
                Issue.record("expected a refusal")
                return
            }
            #expect(outcome.reason == "invalid_grant")
            #expect(exchange.reported.allSatisfy { $0.contains("set the clock") })
            #expect(exchange.reported.allSatisfy { $0.contains(seconds > 0 ? "s behind" : "s ahead of") })
        }
    }

    @Test func `a new account file is used at once, and nothing is lost meanwhile`() async throws {
        try await FCMExchange.with { exchange in
            var other = try await exchange.anotherLane()
            #expect(await exchange.begin() == .granted)
            #expect(await exchange.reload() == false, "the same")
            try await exchange.replaceAccount()
            #expect(await exchange.reload() == true)
            #expect(await exchange.reload() == false, "told once")
            #expect(await exchange.reload(&other) == true, "but to each lane")
            #expect(await exchange.send().kind == .delivered, "the old token serves until the new one is there")
            let asked = await exchange.endpoint.requests(reaching: 2, within: .seconds(60))
            #expect(Set(asked.map(\.keyID)).count == 2, "by another key")
            #expect(await exchange.send().kind == .delivered)
            #expect(await exchange.accesses == [.granted])
        }
    }

    @Test func `an account that is looked after while its refusal is on its way is asked with again`() async throws {
        try await FCMExchange.with { exchange in
            await exchange.endpoint.misbehave(.refused(error: "invalid_grant", description: "no"), times: 1)
            #expect(await exchange.beginAndReload() == .granted)
            #expect(await exchange.endpoint.requests(reaching: 2).count == 2)
        }
    }

    @Test func `a file that cannot be used changes nothing`() async throws {
        try await FCMExchange.with { exchange in
            #expect(await exchange.begin() == .granted)
            try await exchange.replaceAccount(project: "another-1")
            #expect(await exchange.reload() == nil)
            try await exchange.breakAccount()
            #expect(await exchange.reload() == nil)
            #expect(exchange.reported.count == 2)
            #expect(exchange.reported.first?.contains("another project") == true)
            #expect(exchange.reported.last?.contains("holds no JSON object") == true)
            #expect(await exchange.send().kind == .delivered)
        }
    }

    @Test func `a token that FCM refuses is replaced, and the message repeated`() async throws {
        try await FCMExchange.with { exchange in
            #expect(await exchange.begin() == .granted)
            exchange.tokens.revokeAll()
            let end = await exchange.send()
            #expect(end.kind == .misconfigured)
            #expect(await exchange.replaceToken(after: end) == .requested)
            #expect(await exchange.replaceToken(after: end) == .known, "another answer about the old token")
            #expect(await exchange.begin() == .granted)
            #expect(await exchange.send().kind == .delivered)
            #expect(await exchange.endpoint.statistics.granted == 2)
        }
    }

    @Test func `a second refusal is no matter of the token`() async throws {
        try await FCMExchange.with { exchange in
            await exchange.service.misbehave(.fault(.badCredential))
            #expect(await exchange.begin() == .granted)
            let first = await exchange.send()
            #expect(await exchange.replaceToken(after: first) == .requested)
            while await exchange.begin() != .granted {}
            let second = await exchange.send()
            guard case .outcome(let outcome) = second else {
                Issue.record("expected an answer")
                return
            }
            #expect(abs((outcome.providerTime ?? 0) - wallClock()) < 60)
            #expect(await exchange.replaceToken(after: second) == .refused)
            var count = await exchange.accesses.count - 1
            while true {
                if case .refused(let told) = await exchange.nextAccess(after: count) {
                    #expect(told.status == 401 && told.reason == "UNAUTHENTICATED")
                    break
                }
                count += 1
            }
            #expect(await exchange.endpoint.statistics.granted == 2, "no storm of new tokens")
        }
    }
}

extension FCMExchange {
    /// Whether another lane has to wait for its token.
    fileprivate func isAwaited(_ lane: inout FCMProvider) -> Bool {
        lane.authorize(now: 0, isProbe: false) == .awaited
    }

    fileprivate func reload(_ lane: inout FCMProvider) -> Bool? {
        lane.reloadCredential(now: 0)
    }
}

private func wallClock() -> Int64 { CredentialInstant.now.seconds }
