import Foundation
import HTTP2
import Testing

@Suite struct ExchangeTests {
    @Test func aRequestArrivesWholeAndItsAnswerComesBack() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            let request = try connection.nextRequest()
            let names = request.headers.map(\.name)
            guard Array(names.prefix(4)) == [":method", ":scheme", ":authority", ":path"],
                request[":method"] == "POST", request[":path"] == "/3/device/1", request["apns-id"] == "id-1",
                request["authorization"] == "bearer secret", request.body == Array("{}".utf8)
            else { throw ServerError.unexpected("\(request)") }
            connection.respond(1, 410, [("apns-id", "ABC"), ("other", "x")], body: Array("gone".utf8))
            connection.drain()
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit()
            let result = try await harness.results(1)[0]
            #expect(result.status == 410)
            #expect(result.body == Array("gone".utf8))
            #expect(result.captured == ["ABC", "", "", ""])
            #expect(result.tag == 1 && result.wasSent)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }

    @Test func manyRequestsGetTheirOwnAnswers() async throws {
        let server = try ScriptedServer { connection in
            try connection.begin()
            while true {
                let request = try connection.nextRequest()
                connection.respond(request.stream, 200, [("apns-id", request["apns-id"] ?? "")])
            }
        }
        try await ClientHarness.run(port: server.port) { harness in
            await harness.submit(500)
            await harness.submit(500, first: 501)
            let results = try await harness.results(1000)
            #expect(results.allSatisfy { $0.status == 200 && $0.captured[0] == "id-\($0.tag)" })
            #expect(Set(results.map(\.tag)).count == 1000)
        }
        server.stop()
        #expect(server.failures.isEmpty)
    }
}
