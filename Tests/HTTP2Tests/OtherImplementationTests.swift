import Foundation
import HTTP2
import Support
import Testing

/// The client against servers of other people, as their own programs.
@Suite struct OtherImplementationTests {
    private struct SeenRequest: Decodable {
        let headers: [[String]]
        let body: String
    }

    @Test func aServerWithoutAnyOfOurCodeUnderstandsUs() async throws {
        let python = ProcessInfo.processInfo.environment["TEST_PYTHON"]
        let path = try #require(python, "TEST_PYTHON is missing: run the tests with scripts/test")
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peers/h2_server.py").path
        let files = try TestCertificates.shared.writeServerFiles()
        defer { files.remove() }
        let peer = try PeerProcess(path, [script, files.certificate, files.key, "5"])
        let head = try JSONDecoder().decode([String: UInt16].self, from: Data(try peer.nextLine().utf8))
        try await ClientHarness.run(port: try #require(head["port"])) { harness in
            await harness.submit(20, body: Array(#"{"aps":{}}"#.utf8))
            for result in try await harness.results(20) {
                let isOdd = !result.tag.isMultiple(of: 2)
                #expect(result.status == (isOdd ? 410 : 200))
                #expect(result.captured[0] == (isOdd ? "odd" : "even"))
                #expect(result.body.isEmpty != isOdd)
            }
        }
        for number in 1...20 {
            let seen = try JSONDecoder().decode(SeenRequest.self, from: Data(try peer.nextLine().utf8))
            #expect(
                seen.headers == [
                    [":method", "POST"], [":scheme", "https"], [":authority", "127.0.0.1:\(head["port"] ?? 0)"],
                    [":path", "/3/device/\(number)"], ["authorization", "bearer secret"],
                    ["apns-topic", "com.example.app"], ["apns-id", "id-\(number)"],
                ])
            #expect(seen.body == #"{"aps":{}}"#)
        }
        #expect(try peer.nextLine() == #"{"goaway": 0}"#, "we say goodbye in order")
        #expect(peer.exitStatus() == 0)
    }

    @Test func nghttpdTakesHundredsOfRequests() async throws {
        let files = try TestCertificates.shared.writeServerFiles()
        defer { files.remove() }
        // nghttpd cannot choose a port by itself; the one that was free a moment ago is.
        let (descriptor, port) = try ScriptedServer.listen()
        Glibc.close(descriptor)
        let arguments = ["nghttpd", "-a", "127.0.0.1", "-m", "50", "\(port)", files.key, files.certificate]
        let peer = try PeerProcess("/usr/bin/env", arguments)
        defer { peer.end() }
        try await ClientHarness.run(port: port) {
            $0.backoffFirst = .milliseconds(20)
            $0.backoffMax = .milliseconds(20)
        } _: { harness in
            // Until it listens, requests come back unsent.
            await harness.submit()
            try await harness.wait("nghttpd") { $0.statistics.connectionsOpened > 0 }
            let before = await harness.results.count
            await harness.submit(500, first: 2)
            let results = try await harness.results(before + 500).dropFirst(before)
            #expect(results.allSatisfy { $0.status == 404 && !$0.body.isEmpty })
        }
    }
}
