import APNS
import FakeProviders
import Foundation
import HTTP2
import OutboxCore
import Support
import Testing

/// Requests of the encoder, and answers of every kind, over HTTP/2 implementations that share no code with the client
/// (Python's h2) or none of what drives it (Node.js).
@Suite(.timeLimit(.minutes(2))) struct InteroperabilityTests {
    /// The answers, one per device; the mark is where the device's token begins.
    static let answers: [PeerAnswer] = {
        var split = PeerAnswer("0002", 400, body: #"{"reason":"BadDeviceToken"}"#)
        split.piece = 1
        var empty = PeerAnswer("0004", 503)
        empty.headers = [["retry-after", "120"]]
        var large = PeerAnswer("0006", 404, body: "0123456789abcdef")
        large.copies = 12_500
        var html = PeerAnswer("0007", 502, body: "<html><body>Bad Gateway</body></html>")
        html.headers = [["content-type", "text/html"]]
        var late = PeerAnswer("0008", 200)
        late.interim = true
        var trailing = PeerAnswer("0009", 429, body: #"{"reason":"TooManyRequests"}"#)
        trailing.trailers = true
        var bare = PeerAnswer("000a", 200)
        bare.trailers = true
        var answers = [
            PeerAnswer("0001", 200), split,
            PeerAnswer("0003", 410, body: #"{"reason":"Unregistered","timestamp":1700000000000}"#), empty,
            PeerAnswer("0005", 500, body: #"{"reason":"InternalServerError"}"#), large, html, late, trailing, bare,
        ]
        for index in answers.indices {
            answers[index].headers.append(["apns-id", "0189C4CE-7E2C-7BD5-9F8C-7F5A3A1B2C3D"])
        }
        return answers
    }()

    private static func push(_ tokens: [String]) -> MadePush {
        var push = MadePush(
            kind: Kind(
                number: 1, name: "k", presentation: .template(Template(title: TemplateText("hello"))), container: "b",
                pushType: "alert", priority: 10, category: "C", sound: "default", usesThread: true, isMutable: true))
        push.payload = #"{"id":"7","text":"\#(String(repeating: "ü", count: 500))"}"#
        push.thread = "thread"
        push.collapseKey = String(repeating: "ü", count: 40)
        push.badge = 1
        push.tokens = tokens
        return push
    }

    private func with(
        _ implementation: ProviderPeer.Implementation, limit: Int,
        _ body: (ProviderPeer, PeerClient) async throws -> Void
    ) async throws -> ProviderPeer.Goodbye {
        let directory = FileManager.default.temporaryDirectory.appending(path: "peer-\(UUID().uuidString)").path
        try IdentityFiles.write(try ServerIdentity.generated(), to: directory)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let peer = try ProviderPeer(
            implementation, certificate: directory + "/server.pem", key: directory + "/server.key", limit: limit,
            answers: Self.answers)
        defer { peer.stop() }
        try await PeerClient.run(
            port: peer.port, caFile: directory + "/ca.pem", capturing: APNSProvider.capturedHeaders
        ) { client in
            try await body(peer, client)
        }
        return try peer.goodbye()
    }

    @Test(arguments: ProviderPeer.Implementation.allCases)
    func everyKindOfAnswerComesThrough(_ implementation: ProviderPeer.Implementation) async throws {
        let tokens = Self.answers.map { $0.mark + String(repeating: "ab", count: 30) }
        let encoded = Self.push(tokens).encoded()
        let goodbye = try await with(implementation, limit: 100) { _, client in
            let answers = await client.exchange(encoded.batch)
            for (index, expected) in Self.answers.enumerated() {
                let answer = try #require(answers[UInt64(index)])
                let response = try answer.outcome.get()
                #expect(response.status == expected.status)
                #expect(answer.captured.contains("0189C4CE-7E2C-7BD5-9F8C-7F5A3A1B2C3D"))
                let body = Array(String(repeating: expected.body, count: expected.copies).utf8)
                #expect(answer.body == Array(body.prefix(16_384)))
                #expect(response.bodyWasCut == (body.count > 16_384))
            }
        }
        #expect(goodbye.goaway == 0)
    }

    @Test(arguments: ProviderPeer.Implementation.allCases)
    func requestsArriveAsTheEncoderMadeThem(_ implementation: ProviderPeer.Implementation) async throws {
        let tokens = (0..<300).map { "0001" + String(repeating: "ab", count: 28) + String(format: "%04x", $0) }
        let encoded = Self.push(tokens).encoded()
        let goodbye = try await with(implementation, limit: 20) { peer, client in
            let answers = await client.exchange(encoded.batch)
            #expect(answers.count == 300)
            #expect(answers.values.allSatisfy { (try? $0.outcome.get())?.status == 200 })
            var seen: [String: PeerRequest] = [:]
            for _ in tokens {
                let request = try peer.nextRequest()
                seen[request.headers[3][1]] = request
            }
            for index in tokens.indices {
                let request = try #require(seen["/3/device/\(tokens[index])"])
                #expect(
                    request.headers.prefix(4) == [
                        [":method", "POST"], [":scheme", "https"], [":authority", "localhost:\(peer.port)"],
                        [":path", "/3/device/\(tokens[index])"],
                    ])
                let own = Dictionary(uniqueKeysWithValues: request.headers.dropFirst(4).map { ($0[0], $0[1]) })
                #expect(own == encoded.headers(index))
                #expect(request.body == encoded.text(encoded.batch.requests[index].body))
            }
        }
        #expect(goodbye.goaway == 0)
        #expect(goodbye.mostOpen <= 20, "never one stream more than the peer allows")
    }
}
