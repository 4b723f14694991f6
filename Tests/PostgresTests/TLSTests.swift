import Foundation
import Postgres
import Support
import Testing

/// Sessions through TLS.
@Suite(.timeLimit(.minutes(2)))
struct TLSTests {
    /// A proxy that speaks TLS in the place of the server.
    private struct Proxy {
        let peer: PeerProcess
        let port: String

        init(before server: TestServer) throws {
            guard let python = ProcessInfo.processInfo.environment["TEST_PYTHON"] else {
                throw TestServer.Missing(description: "TEST_PYTHON is not set: run scripts/test")
            }
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Peers/tls_proxy.py")
            peer = try PeerProcess(python, [script.path, server.socketPath()])
            port = try peer.nextLine()
        }

        func connect() async throws -> PostgresConnection {
            let text = "host=127.0.0.1 port=\(port) user=postgres dbname=postgres sslmode=require"
            return try await PostgresConnection.connect(try PostgresConfiguration(text), on: TestServer.loop)
        }
    }

    private static let rows = PostgresStatement(
        "rows", "SELECT g, repeat('x', 400 + g % 7) FROM generate_series(1, $1) g", parameterTypes: [.int4])

    private static func query(_ count: Int) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(Int32(count))
        return PostgresCommand(rows, parameters)
    }

    /// Of a record that is larger than the room in its buffer, libpq leaves the rest with OpenSSL, where no socket
    /// tells of it.
    @Test(arguments: TestServer.allCases)
    func `Answers of any size come whole, however large the records are`(server: TestServer) async throws {
        let proxy = try Proxy(before: server)
        let connection = try await proxy.connect()
        for count in [0, 1, 20, 30, 38, 39, 40, 41, 50, 77, 100, 200, 500, 1000, 20_000] {
            let command = Self.query(count)
            let result = try await connection.query(
                command.statement, command.parameters, deadline: .now + .seconds(20))
            #expect(result.rowCount == count)
        }
        let results = try await connection.pipeline([1, 90, 3, 400].map(Self.query), deadline: .now + .seconds(20))
        #expect(try results.map { try $0.get().rowCount } == [1, 90, 3, 400])
        await connection.close()
        try proxy.peer.endInput()
        #expect(proxy.peer.exitStatus() == 0)
    }
}
