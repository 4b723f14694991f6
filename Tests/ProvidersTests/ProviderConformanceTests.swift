import Foundation
import HTTP2
import OutboxCore
import Support
import Testing

/// What `PushProvider` promises, of every provider alike.
@Suite(.serialized, .timeLimit(.minutes(5))) @ProviderLoop struct ProviderConformanceTests {
    private nonisolated static let providers = ConformingProvider.all

    // MARK: Requests

    @Test(arguments: providers) func `each target becomes one request, in order, with its tag`(
        subject: ConformingProvider
    ) async throws {
        let encoded = try await subject.encoded(subject.push(to: subject.tokens + subject.tokens))
        #expect(encoded.refusal == nil && encoded.targetRefusals.isEmpty)
        #expect(encoded.batch.requests.map(\.tag) == [0, 1, 2, 3])
        for request in encoded.batch.requests {
            #expect(encoded.text(request.path).hasPrefix("/") && !encoded.text(request.body).isEmpty)
            let names = encoded.batch.sharedHeaders[Int(request.shared)].map(\.name)
            #expect(names.contains("authorization") && names.allSatisfy { $0 == $0.lowercased() })
        }
    }

    @Test(arguments: providers) func `a malformed token is dead without a request, and its neighbours are sent to`(
        subject: ConformingProvider
    ) async throws {
        for token in subject.malformed {
            let encoded = try await subject.encoded(subject.push(to: [subject.tokens[0], token, subject.tokens[1]]))
            let expected = Outcome(.unregistered, reason: "token_malformed", proof: .proven)
            #expect(encoded.targetRefusals == [expected], "\(token.debugDescription)")
            #expect(encoded.batch.requests.map(\.tag) == [0, 2])
        }
    }

    @Test(arguments: providers) func `a body is bounded, and what is too large is refused without a request`(
        subject: ConformingProvider
    ) async throws {
        var refusals: Set<String> = []
        for size in stride(from: 3000, through: 5500, by: 50) {
            var push = subject.push(to: subject.tokens)
            push.payload = "{\"k\":\"\(String(repeating: "x", count: size))\"}"
            let encoded = try await subject.encoded(push)
            if let refusal = encoded.refusal {
                #expect(refusal.kind == .rejected && refusal.scope == .target && encoded.batch.requests.isEmpty)
                refusals.insert(refusal.reason)
            } else {
                #expect(refusals.isEmpty, "a larger payload is taken where a smaller one is not")
                #expect(encoded.batch.requests.allSatisfy { $0.body.count < 6000 })
            }
        }
        #expect(refusals == ["payload_too_large"])
    }

    @Test(arguments: providers) func `a payload that is no object is refused without a request`(
        subject: ConformingProvider
    ) async throws {
        var push = subject.push(to: subject.tokens)
        for payload in ["", "[]", "7", "nothing"] {
            push.payload = payload
            let encoded = try await subject.encoded(push)
            #expect(encoded.refusal == Outcome(.rejected, reason: "payload_malformed"))
            #expect(encoded.batch.requests.isEmpty)
        }
    }

    @Test(arguments: providers) func `every attempt and every device carries the same id and collapse key`(
        subject: ConformingProvider
    ) async throws {
        var push = subject.push(to: subject.tokens)
        var provider = try await subject.make()
        _ = provider.authorize(now: ConformingProvider.now, isProbe: false)
        var seen: Set<[String?]> = []
        for attempt in 0..<3 {
            push.now = push.now + .seconds(Int64(attempt) * 60)
            var encoded = MadePush.Encoded()
            ConformingProvider.encode(push, with: &provider, into: &encoded)
            for index in encoded.batch.requests.indices { seen.insert(subject.identity(encoded, index)) }
        }
        #expect(seen == [[push.notification.description, "approval:7"]])
    }

    @Test(arguments: providers) func `notifications of one batch do not mix`(subject: ConformingProvider) async throws {
        var provider = try await subject.make()
        _ = provider.authorize(now: ConformingProvider.now, isProbe: false)
        var encoded = MadePush.Encoded()
        for number in 0..<3 {
            var push = subject.push(to: subject.tokens)
            push.notification = Identifier(high: 1, low: UInt64(number))
            push.payload = "{\"number\":\"n\(number)\"}"
            if number == 1 { push.payload = "[]" }
            ConformingProvider.encode(push, with: &provider, into: &encoded)
        }
        // The middle one was refused; its neighbours keep their own bodies.
        let bodies = encoded.batch.requests.map { encoded.text($0.body) }
        #expect(bodies.map { $0.contains("\"n0\"") } == [true, true, false, false])
        #expect(bodies.map { $0.contains("\"n2\"") } == [false, false, true, true])
        #expect(subject.identity(encoded, 2)[0] == Identifier(high: 1, low: 2).description)
    }

    // MARK: Answers

    @Test(arguments: providers) func `an accepted push is delivered, whatever the body`(
        subject: ConformingProvider
    ) async throws {
        let provider = try await subject.make()
        for body in ["", "{}", "{", "nothing", "[]", String(repeating: "[", count: 16_384)] {
            let answer = MadeResponse(200, body)
            let outcome = provider.decode(answer.response, text: answer.bytes)
            #expect(outcome.kind == .delivered && outcome.status == 200 && outcome.advice == .none)
            #expect(outcome.proof == .none && outcome.retryFloor == .zero)
        }
    }

    @Test(arguments: providers) func `no unknown answer clears a token by its words, or fails more than its own`(
        subject: ConformingProvider
    ) async throws {
        let provider = try await subject.make()
        let bodies = [
            "", "{}", "{", "[]", "null", "<html>", #"{"reason":"New"}"#, #"{"reason":7}"#,
            #"{"error":{"status":"NEW"}}"#,
            #"{"error":[]}"#, "\u{FEFF}{}", String(repeating: "{\"a\":", count: 200),
        ]
        for status in 100...999 where status != 200 {
            for body in bodies {
                let answer = MadeResponse(status, body)
                let outcome = provider.decode(answer.response, text: answer.bytes)
                #expect(outcome.kind != .delivered && outcome.status == Int16(status))
                // Only a status that has no other meaning may do it: APNs' 410.
                let isGone = subject.name == "APNSProvider" && status == 410
                #expect((outcome.proof == .none && outcome.kind != .unregistered) || isGone, "\(status) \(body)")
                if outcome.kind == .rejected { #expect(outcome.scope == .target) }
                if outcome.scope != .target { #expect(outcome.kind == .misconfigured || outcome.kind == .throttled) }
                #expect(outcome.retryFloor >= .zero && outcome.retryFloor <= .seconds(3600))
                #expect(outcome.reason.utf8.count <= 64)
                #expect(outcome.reason.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F })
            }
        }
    }

    @Test(arguments: providers) func `no server error and no request for patience speaks against a token`(
        subject: ConformingProvider
    ) async throws {
        let provider = try await subject.make()
        for passing in subject.passing {
            let answer = MadeResponse(passing.status, passing.body)
            let outcome = provider.decode(answer.response, text: answer.bytes)
            #expect(outcome.kind == (passing.status == 429 ? .throttled : .retry))
            #expect(outcome.proof == .none)
        }
    }

    @Test(arguments: providers) func `a dead token is proven dead, and a suspicious one needs a proven lane`(
        subject: ConformingProvider
    ) async throws {
        let provider = try await subject.make()
        let dead = MadeResponse(subject.dead.status, subject.dead.body)
        let outcome = provider.decode(dead.response, text: dead.bytes)
        #expect(outcome.kind == .unregistered && outcome.proof == .proven && outcome.scope == .target)
        guard let suspicious = subject.suspicious else { return }
        let answer = MadeResponse(suspicious.status, suspicious.body)
        #expect(provider.decode(answer.response, text: answer.bytes).proof == .needsProvenLane)
    }

    // MARK: Access and secrets

    @Test(arguments: providers) func `asking for access again changes nothing while the token lives`(
        subject: ConformingProvider
    ) async throws {
        var provider = try await subject.make()
        let first = provider.authorize(now: ConformingProvider.now, isProbe: false)
        let mark = provider.tokenMark
        #expect(first == .granted(byAnotherCredential: false))
        let second = provider.authorize(now: ConformingProvider.now + 60, isProbe: false)
        #expect(second == .granted(byAnotherCredential: false) && provider.tokenMark == mark)
    }

    @Test(arguments: providers) func `an answer about a token that is not in use any more changes nothing`(
        subject: ConformingProvider
    ) async throws {
        var provider = try await subject.make()
        _ = provider.authorize(now: ConformingProvider.now, isProbe: false)
        let mark = provider.tokenMark
        let refusal = Outcome(.misconfigured, scope: .lane, status: 401, advice: .replaceToken)
        let replacement = provider.replaceToken(mark &+ 7, because: refusal, now: ConformingProvider.now)
        #expect(replacement == .known)
        #expect(provider.tokenMark == mark)
    }

    @Test(arguments: providers) func `no description of a provider or of its requests shows a secret`(
        subject: ConformingProvider
    ) async throws {
        var provider = try await subject.make()
        _ = provider.authorize(now: ConformingProvider.now, isProbe: false)
        var encoded = MadePush.Encoded()
        ConformingProvider.encode(subject.push(to: subject.tokens), with: &provider, into: &encoded)
        let header = encoded.headers()["authorization"] ?? ""
        let secret = try #require(header.split(separator: " ").last.map(String.init))
        var dumped = "\(provider) \(String(reflecting: provider)) \(encoded.batch) \(String(reflecting: encoded.batch))"
        dump(provider, to: &dumped)
        dump(encoded.batch, to: &dumped)
        #expect(!dumped.contains(secret))
        for token in subject.tokens { #expect(!dumped.contains(token)) }
        #expect(!dumped.contains("payload-canary"))
        let sensitive = encoded.batch.sharedHeaders.flatMap(\.self).filter(\.isSensitive).map(\.name)
        #expect(sensitive.allSatisfy { $0 == "authorization" } && !sensitive.isEmpty)
    }

    // MARK: Gate 16

    /// The agent platform's gate 16: every port has a contract that every adapter is held to.
    @Test func `gate 16 notify port_contracts: every provider in the sources is held to this contract`() throws {
        let root = ProviderPage.file.deletingLastPathComponent().deletingLastPathComponent()
        let held = Set(Self.providers.map(\.name))
        var found: Set<String> = []
        for folder in ["Sources", "Tests/Support"] {
            let files = try #require(
                FileManager.default.enumerator(at: root.appending(path: folder), includingPropertiesForKeys: nil))
            for case let file as URL in files where file.pathExtension == "swift" {
                let source = try String(contentsOf: file, encoding: .utf8)
                for match in source.matches(
                    of: /(?:struct|class|actor|enum|extension) (\w+)[^{\n]*: [^{\n]*\bPushProvider\b/)
                {
                    found.insert(String(match.1))
                }
            }
        }
        #expect(found.isSubset(of: held), "not held to the contract: \(found.subtracting(held).sorted())")
        #expect(found.isSuperset(of: ["APNSProvider", "FCMProvider", "ScriptedProvider"]))
    }
}
