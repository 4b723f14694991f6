import EventLoop
import Foundation
import HTTP2
import Testing

/// The connection is cut after each few bytes of its life, in both directions. Wherever that is, the client's verdict
/// has to agree with the server's record.
@Suite struct CutConnectionTests {
    private static let request = [UInt8](repeating: UInt8(ascii: "x"), count: 300)

    /// Cuts after `limit` bytes; answers whether all requests were answered, so that a later cut would change nothing.
    private static func cut(
        _ direction: CuttingForwarder.Direction, after limit: Int, resets: Bool
    ) async throws -> Bool {
        let record = ActRecord()
        let server = try ScriptedServer { connection in
            try connection.begin()
            try ConnectionDeathTests.serve(connection, record)
        }
        defer { server.stop() }
        let forwarder = try CuttingForwarder(to: server.port, cutting: direction, after: limit, resets: resets)
        defer { forwarder.stop() }
        let results = Collected()
        try await ClientHarness.run(port: forwarder.port) {
            $0.connectionsMax = 1
            $0.requestTimeout = .seconds(15)
        } _: { harness in
            await harness.submit(3, body: Self.request)
            results.set(try await harness.results(3))
        }
        let acts = record.acts
        for result in results.all {
            let acted = acts["id-\(result.tag)"] ?? 0
            let place = "\(direction) after \(limit) bytes: \(result.outcome), acted on \(acted) times"
            #expect(acted <= 1, "\(place)")
            switch result.outcome {
            case .success(let response): #expect(acted == 1 && response.status == 200, "\(place)")
            case .failure(.notSent): #expect(acted == 0 && !result.wasSent, "\(place)")
            case .failure(.unanswered): #expect(result.wasSent, "\(place)")
            }
        }
        return results.all.allSatisfy { $0.status == 200 }
    }

    @Test(arguments: [CuttingForwarder.Direction.toServer, .toClient], [true, false])
    func whereverItIsCutTheVerdictAgreesWithTheServer(
        _ direction: CuttingForwarder.Direction, resets: Bool
    ) async throws {
        // A step that is prime to the sizes of records and frames, and a beginning that differs from run to run.
        let first = Int.random(in: 0..<47)
        var limit = first
        while try await !Self.cut(direction, after: limit, resets: resets) {
            limit += 47
            try #require(limit < 20_000, "three small requests need less; began at \(first)")
        }
        #expect(limit > 1000, "the handshake alone needs more; began at \(first)")
    }
}

/// Results on their way out of a closure.
private final class Collected: Sendable {
    private let results = Guarded([Ended]())

    func set(_ results: [Ended]) { self.results.withLock { $0 = results } }

    var all: [Ended] { results.withLock { $0 } }
}
