import Foundation
import HTTP2
import Support

/// `Peers/raw_server.py`: the second server, which shares no code with ours, in one of its scenarios.
final class RawServer {
    /// What it has seen.
    struct Report: Decodable {
        let connections: Int
        let requests: Int
        /// Stream and code.
        let resets: [[Int]]
        let goaways: [String]
        let mostOpen: Int
        /// What the client did wrong, or the scenario.
        let faults: [String]
    }

    let port: UInt16
    private let process: PeerProcess
    private let files: ServerFiles

    init(_ scenario: String) throws {
        files = try TestCertificates.shared.writeServerFiles()
        guard let python = ProcessInfo.processInfo.environment["TEST_PYTHON"] else {
            throw TestSetupError("TEST_PYTHON is missing: run the tests with scripts/test")
        }
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Peers/raw_server.py").path
        process = try PeerProcess(python, [script, files.certificate, files.key, scenario])
        let head = try JSONDecoder().decode([String: UInt16].self, from: Data(try process.nextLine().utf8))
        guard let port = head["port"] else { throw ServerError.unexpected("no port") }
        self.port = port
    }

    /// Runs `body` with a client of a server that plays `scenario`, and answers what the server has seen.
    static func run(
        _ scenario: String, _ change: (inout HTTP2ClientConfiguration) throws -> Void = { _ in },
        _ body: @Sendable (ClientHarness) async throws -> Void
    ) async throws -> Report {
        let server = try RawServer(scenario)
        defer { server.end() }
        try await ClientHarness.run(port: server.port, change, body)
        return try server.report()
    }

    private func report() throws -> Report {
        try process.endInput()
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Report.self, from: Data(try process.nextLine().utf8))
    }

    private func end() {
        process.end()
        files.remove()
    }
}
