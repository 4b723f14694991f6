import Foundation
import HTTP2
import Testing

@Suite struct TLSTests {
    @Test func theNameOfTheHostIsChecked() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            connection.respond(try connection.nextRequest().stream)
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) {
            $0.host = "localhost"
        } _: { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].status == 200)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func anUnusableFileOfAuthoritiesIsNamed() async throws {
        let server = try ScriptedServer { $0.drain() }
        try await ClientHarness.run(port: server.port) {
            $0.caFile = "/does/not/exist.pem"
        } _: { harness in
            await harness.submit()
            let results1 = try await harness.results(1)
            #expect(results1[0].fault == .notSent(.noConnection))
            #expect(await harness.downCode == .caFile)
        }
        server.stop()
    }
}
