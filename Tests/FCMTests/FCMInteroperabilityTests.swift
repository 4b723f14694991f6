import FCM
import FakeProviders
import Foundation
import HTTP2
import OutboxCore
import Support
import Testing

/// Requests of the encoder, and answers as Google words them, over HTTP/2 implementations that are not ours.
@Suite(.timeLimit(.minutes(2))) struct FCMInteroperabilityTests {
    /// The answers, one per device; the mark is where the device's token begins.
    static let answers: [PeerAnswer] = {
        var slow = PeerAnswer(
            "mark0002", 429, body: FCMAnswer.error("RESOURCE_EXHAUSTED", FCMAnswer.detail("QUOTA_EXCEEDED")))
        slow.headers = [["retry-after", "120"], ["date", "Mon, 30 Nov 2026 10:00:00 GMT"]]
        var split = PeerAnswer(
            "mark0003", 404, body: FCMAnswer.error("NOT_FOUND", FCMAnswer.detail("UNREGISTERED")))
        split.piece = 1
        var page = PeerAnswer("mark0004", 502, body: "<html><body>Bad Gateway</body></html>")
        page.headers = [["content-type", "text/html"]]
        page.interim = true
        var trailing = PeerAnswer("mark0006", 200, body: #"{"name":"projects/postbell-demo/messages/2"}"#)
        trailing.trailers = true
        return [
            PeerAnswer("mark0001", 200, body: #"{"name":"projects/postbell-demo/messages/0:1%31bd"}"#), slow, split,
            page, PeerAnswer("mark0005", 503), trailing,
        ]
    }()

    /// What the decoder makes of them.
    static let outcomes: [OutcomeKind] = [.delivered, .throttled, .unregistered, .retry, .retry, .delivered]

    @Test(arguments: ProviderPeer.Implementation.allCases)
    func everyKindOfAnswerComesThroughAndIsRead(_ implementation: ProviderPeer.Implementation) async throws {
        var push = MadePush.android(
            Kind(number: 1, name: "k", presentation: .template(Template(title: TemplateText("hello"))), container: "b"))
        push.payload = #"{"id":"7","text":"\#(String(repeating: "ü", count: 500))"}"#
        push.tokens = Self.answers.map { $0.mark + ":" + String(repeating: "aB-_9", count: 28) }
        let encoded = push.encodedForFCM()
        #expect(encoded.batch.requests.count == Self.answers.count)
        try await with(implementation) { peer, client in
            let answers = await client.exchange(encoded.batch)
            for (index, expected) in Self.answers.enumerated() {
                let answer = try #require(answers[UInt64(index)])
                let response = try answer.outcome.get()
                #expect(response.status == expected.status)
                #expect(answer.body == Array(expected.body.utf8))
                let made = MadeResponse(response.status, answer.body, captured: Array(answer.captured.prefix(2)))
                #expect(made.decoded().kind == Self.outcomes[index])
            }
            var bodies: Set<String> = []
            for _ in Self.answers {
                let request = try peer.nextRequest()
                bodies.insert(request.body)
                #expect(
                    request.headers.prefix(4) == [
                        [":method", "POST"], [":scheme", "https"], [":authority", "localhost:\(peer.port)"],
                        [":path", "/v1/projects/postbell-demo/messages:send"],
                    ])
                let own = Dictionary(uniqueKeysWithValues: request.headers.dropFirst(4).map { ($0[0], $0[1]) })
                #expect(own == encoded.headers())
            }
            #expect(bodies == Set(encoded.batch.requests.map { encoded.text($0.body) }))
        }
    }

    private func with(
        _ implementation: ProviderPeer.Implementation, _ body: (ProviderPeer, PeerClient) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "peer-\(UUID().uuidString)").path
        try IdentityFiles.write(try ServerIdentity.generated(), to: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let peer = try ProviderPeer(
            implementation, certificate: directory + "/server.pem", key: directory + "/server.key", limit: 100,
            answers: Self.answers)
        defer { peer.stop() }
        try await PeerClient.run(
            port: peer.port, caFile: directory + "/ca.pem", capturing: FCMProvider.capturedHeaders
        ) { client in
            try await body(peer, client)
        }
        #expect(try peer.goodbye().goaway == 0)
    }
}
