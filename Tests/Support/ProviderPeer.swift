import Foundation

/// What a provider of another implementation answers to requests whose path or body holds `mark`.
package struct PeerAnswer: Encodable, Sendable {
    package var mark: String
    package var status: Int
    /// Pairs of name and value.
    package var headers: [[String]] = []
    /// The body is `body`, `copies` times over, in DATA frames of at most `piece` bytes.
    package var body = ""
    package var copies = 1
    package var piece = 16_384
    /// Whether a 103 comes first.
    package var interim = false
    package var trailers = false

    /// An answer to one kind of request.
    package init(_ mark: String, _ status: Int, body: String = "") {
        self.mark = mark
        self.status = status
        self.body = body
    }
}

/// A request as a provider of another implementation has seen it.
package struct PeerRequest: Decodable, Sendable {
    /// Pairs of name and value, in the order in which they came.
    package let headers: [[String]]
    package let body: String
}

/// A provider that is a program in another language, on an HTTP/2 implementation that is not ours. Serves one
/// connection.
package final class ProviderPeer {
    /// Whose HTTP/2 it is.
    package enum Implementation: String, CaseIterable, Sendable {
        case pythonH2 = "Python's h2"
        case node = "Node.js"
    }

    /// How a connection ended.
    package struct Goodbye: Decodable {
        /// The code of the client's GOAWAY.
        package let goaway: Int
        /// Most requests at a time that had no whole answer.
        package let mostOpen: Int

        private enum CodingKeys: String, CodingKey {
            case goaway
            case mostOpen = "most_open"
        }
    }

    /// Where it listens.
    package let port: UInt16
    private let process: PeerProcess

    /// Starts it with the certificate and key in these PEM files. It allows `limit` streams at a time.
    package init(
        _ implementation: Implementation, certificate: String, key: String, limit: Int, answers: [PeerAnswer]
    ) throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "answers-\(UUID()).json")
        try JSONEncoder().encode(answers).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peers")
        let arguments = [certificate, key, "\(limit)", file.path]
        switch implementation {
        case .pythonH2:
            guard let python = ProcessInfo.processInfo.environment["TEST_PYTHON"] else {
                throw TestSetupError("TEST_PYTHON is not set: run the tests with scripts/test")
            }
            process = try PeerProcess(python, [script.appending(path: "provider_h2.py").path] + arguments)
        case .node:
            process = try PeerProcess(
                "/usr/bin/env", ["node", script.appending(path: "provider_node.mjs").path] + arguments)
        }
        // It has read the answers once it says where it is.
        let head = try JSONDecoder().decode([String: UInt16].self, from: Data(process.nextLine().utf8))
        guard let port = head["port"] else { throw TestSetupError("the peer does not say where it listens") }
        self.port = port
    }

    /// The next request it has seen.
    package func nextRequest() throws -> PeerRequest {
        try JSONDecoder().decode(PeerRequest.self, from: Data(process.nextLine().utf8))
    }

    /// Waits for its end, after the client's, past requests that nobody has asked for.
    package func goodbye() throws -> Goodbye {
        var line: String
        repeat {
            line = try process.nextLine()
        } while (try? JSONDecoder().decode(PeerRequest.self, from: Data(line.utf8))) != nil
        let goodbye = try JSONDecoder().decode(Goodbye.self, from: Data(line.utf8))
        let status = process.exitStatus()
        guard status == 0 else { throw TestSetupError("the peer ended with status \(status)") }
        return goodbye
    }

    /// Ends it, whatever it does.
    package func stop() { process.end() }
}
