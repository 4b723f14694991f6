import Foundation
import HTTP2
import Testing

@Suite struct TLSTests {
    static let refused: [(ServerTLS, HTTP2ConnectionError.Code)] = [
        (ServerTLS(credential: TestCertificates.shared.foreign), .wrongHost),
        (ServerTLS(credential: TestCertificates.shared.expired), .certificateExpired),
        (ServerTLS(credential: TestCertificates.shared.unknown), .unknownAuthority),
        (ServerTLS(speaksOnlyTLS11: true), .tlsVersion),
        (ServerTLS(offersHTTP2: false), .noHTTP2),
    ]

    @Test(arguments: refused)
    func anUnfitPeerIsRefusedBeforeAnyByteOfARequest(tls: ServerTLS, code: HTTP2ConnectionError.Code) async throws {
        let server = try ScriptedServer(tls) { connection in
            try connection.begin()
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.fault == .notSent(.noConnection))
            #expect(await harness.downCode == code)
            #expect(await harness.capacity == 0)
        }
        server.stop()
        #expect(server.requestBytes == 0)
        #expect(server.connections == 1)
    }

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
