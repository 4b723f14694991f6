import APNS
import FakeProviders
import HTTP2
import OutboxCore
import Support
import Testing

/// Requests as they really go over TLS and HTTP/2, judged by the stand-in's rules, which share no code with the
/// encoder.
@Suite(.timeLimit(.minutes(5))) struct APNSExchangeTests {
    private static func with(
        sandbox: Bool = false, requestTimeout: Duration = .seconds(60), _ body: (APNSExchange) async throws -> Void
    ) async throws {
        let exchange = try await APNSExchange.start(sandbox: sandbox, requestTimeout: requestTimeout)
        do {
            try await body(exchange)
        } catch {
            await exchange.stop()
            throw error
        }
        await exchange.stop()
    }

    private static func push(_ token: String) -> MadePush {
        var push = MadePush.template(title: "hello")
        push.tokens = [token]
        return push
    }

    private static func outcome(_ exchange: APNSExchange, _ token: String) async throws -> Outcome? {
        guard case .outcome(let outcome) = try await exchange.send(push(token)).first else { return nil }
        return outcome
    }

    @Test func `the service accepts what the encoder makes, for every push type and priority`() async throws {
        try await Self.with { exchange in
            var sent = 0
            for type in APNSPushType.all {
                for priority in [10, 5, 1] where type.allows(priority: priority) {
                    var push = MadePush(
                        kind: Kind(
                            number: 1, name: "k", presentation: .template(Template(title: TemplateText("hello"))),
                            container: "b", pushType: type.name, priority: priority, category: "C", sound: "default",
                            usesThread: true, isMutable: true))
                    push.payload = "{\"id\":\"7\"}"
                    push.thread = "thread"
                    push.collapseKey = String(repeating: "ü", count: 40)
                    push.badge = 1
                    let ends = try await exchange.send(push)
                    guard case .outcome(let outcome) = ends.first else {
                        Issue.record("\(type.name) \(priority): \(ends)")
                        continue
                    }
                    #expect(outcome.kind == .delivered, "\(type.name) \(priority): \(outcome.reason)")
                    #expect(outcome.providerIdentifier == .uuid(push.notification))
                    sent += 1
                }
            }
            let statistics = await exchange.service.statistics
            #expect(statistics.accepted == sent)
            #expect(statistics.providerTokens == 1)
            #expect(statistics.protocolErrors == 0)
        }
    }

    @Test func `the sandbox's unique id is the provider's name for the push`() async throws {
        try await Self.with(sandbox: true) { exchange in
            let outcome = try #require(try await Self.outcome(exchange, "00fc13ad"))
            let identifier = try #require(outcome.providerIdentifier)
            #expect(identifier != .uuid(MadePush().notification))
        }
    }

    @Test func `what the service refuses comes to the outcome of the table`() async throws {
        try await Self.with { exchange in
            let expected: [(String, OutcomeKind, String)] = [
                ("fa400abc", .unregistered, "BadDeviceToken"), ("fa410abc", .unregistered, "Unregistered"),
                ("fa413abc", .rejected, "PayloadTooLarge"), ("fa429abc", .throttled, "TooManyRequests"),
                ("fa500abc", .retry, "InternalServerError"), ("fa503abc", .retry, "ServiceUnavailable"),
                ("fa403abc", .misconfigured, "InvalidProviderToken"), ("fa009abc", .retry, "no_reason"),
                ("fa418abc", .rejected, "Imagined"), ("fa404abc", .rejected, "BadPath"),
                ("fa405abc", .rejected, "MethodNotAllowed"), ("fa302abc", .rejected, "Imagined"),
            ]
            for (token, kind, reason) in expected {
                let outcome = try await Self.outcome(exchange, token)
                #expect(outcome?.kind == kind, "\(token)")
                #expect(outcome?.reason == reason, "\(token)")
            }
            let dead = try await Self.outcome(exchange, "fa410abc")
            #expect(dead?.deadSince != nil && dead?.proof == .proven)
        }
    }

    @Test func `what was not processed is sent again, once, and what was lost is not`() async throws {
        try await Self.with { exchange in
            for token in ["fa0041ab", "fa0061ab", "fa0071ab", "fa005abc", "fa003abc"] {
                #expect(try await Self.outcome(exchange, token)?.kind == .delivered, "\(token)")
            }
            // Refused or gone away once, then accepted: two requests each; the others one.
            #expect(await exchange.service.statistics.requests == 8)
            for token in ["fa001abc", "fa002abc"] {
                let ends = try await exchange.send(Self.push(token))
                guard case .fault(.unanswered) = ends.first else {
                    Issue.record("\(token): \(ends)")
                    continue
                }
            }
            #expect(await exchange.service.statistics.requests == 10)
        }
    }

    @Test func `a request that is never answered times out by itself`() async throws {
        try await Self.with(requestTimeout: .seconds(2)) { exchange in
            // On a busy machine the handshake alone can take this long: begin with a connection that stands.
            var isUp = false
            for _ in 0..<20 where !isUp { isUp = try await Self.outcome(exchange, "00fc13ad")?.kind == .delivered }
            #expect(try await exchange.send(Self.push("fa000abc")) == [.fault(.unanswered(.timeout))])
            #expect(try await Self.outcome(exchange, "00fc13ad")?.kind == .delivered)
        }
    }

    @Test func `an expired provider token is replaced, and the push repeated on a new connection`() async throws {
        try await Self.with { exchange in
            // Made half an hour ago by its date, with up to 20 minutes for the grid: an hour has not passed yet.
            await exchange.setClock(behind: 1800)
            #expect(try await Self.outcome(exchange, "00fc13ad")?.kind == .delivered)
            await exchange.setClock(behind: 0)
            await exchange.service.setClock(ahead: 2000)
            let refused = try await Self.outcome(exchange, "00fc13ad")
            #expect(refused?.reason == "ExpiredProviderToken" && refused?.advice == .replaceToken)
            #expect(await exchange.replaceToken())
            #expect(try await Self.outcome(exchange, "00fc13ad")?.kind == .delivered)
            let statistics = await exchange.service.statistics
            #expect(statistics.providerTokens == 2)
            #expect(statistics.connections == 2)
        }
    }

    @Test func `many targets of one notification all arrive`() async throws {
        try await Self.with { exchange in
            var push = MadePush.template(body: "hello")
            push.tokens = (0..<300).map { String(0xABCD_0000 + $0, radix: 16) }
            let ends = try await exchange.send(push)
            #expect(ends.count == 300)
            let delivered = ends.filter {
                if case .outcome(let outcome) = $0 { outcome.kind == .delivered } else { false }
            }
            #expect(delivered.count == 300)
            #expect(Set(await exchange.service.requests.map(\.token)) == Set(push.tokens))
            #expect(await exchange.service.statistics.protocolErrors == 0)
        }
    }
}
