import FakeProviders
import Foundation
import Testing

@Suite struct FakeFCMTests {
    @Test func `accepts a message with a token of the token endpoint, and keeps it on record`() async throws {
        try await GoogleFixture.run { fixture in
            let bearer = try fixture.accessToken()
            let answer = try fixture.send(GoogleFixture.message(), bearer: bearer)
            #expect(answer.status == 200, "\(answer.problem)\(answer.body)")
            let name = try #require(answer.object["name"] as? String)
            #expect(name.hasPrefix("projects/\(GoogleFixture.project)/messages/"))
            let seen = try #require(await fixture.fcm.requests.first)
            #expect(seen.token == GoogleFixture.token)
            #expect(seen.keyID == fixture.account.keyID)
            #expect(seen.headers["authorization"] == "Bearer", "the access token is on no record")
            #expect(seen.body == GoogleFixture.message())
        }
    }

    @Test func `holds access tokens to issue, age, project and revocation`() async throws {
        try await GoogleFixture.run(.init(projects: [GoogleFixture.project, "other-project"])) { fixture in
            let body = GoogleFixture.message()
            let none = try fixture.send(body, bearer: nil)
            #expect(none.status == 401 && none.error["status"] as? String == "UNAUTHENTICATED")
            #expect(none.errorCode == nil)
            #expect(try fixture.send(body, bearer: "ya29.made-up").status == 401)
            let bearer = try fixture.accessToken()
            let other = try fixture.send(body, bearer: bearer, project: "other-project")
            #expect(other.status == 403 && other.error["status"] as? String == "PERMISSION_DENIED")
            #expect(other.errorCode == nil)
            let missing = try fixture.send(body, bearer: bearer, project: "no-project")
            #expect(missing.status == 404 && missing.errorCode == nil)
            await fixture.fcm.setClock(ahead: 3700)
            #expect(try fixture.send(body, bearer: bearer).status == 401)
            await fixture.fcm.setClock(ahead: 0)
            #expect(try fixture.send(body, bearer: bearer).status == 200)
            fixture.tokens.revokeAll()
            #expect(try fixture.send(body, bearer: bearer).status == 401)
        }
    }

    struct Slip: CustomTestStringConvertible, Sendable {
        let message: String
        let words: String
        let errorCode: String?

        init(_ message: String, _ words: String, errorCode: String? = nil) {
            self.message = message
            self.words = words
            self.errorCode = errorCode
        }

        var testDescription: String { String(message.prefix(60)) }
    }

    private static let slips = [
        Slip(#"{"token":"t","sound":"x"}"#, #"Unknown name "sound" at 'message': Cannot find field."#),
        Slip(#"{"token":"t","android":{"color":"x"}}"#, #"Unknown name "color" at 'message.android'"#),
        Slip(#"{"token":"t","data":{"n":7}}"#, "Invalid value at 'message.data[0].value' (TYPE_STRING)"),
        Slip(#"{"token":"t","data":{"a":"b","n":{"x":"y"}}}"#, "'message.data[1].value'"),
        Slip(#"{"token":"t","data":{"from":"x"}}"#, "Invalid data payload key: from", errorCode: "INVALID_ARGUMENT"),
        Slip(#"{"token":"t","data":{"google.x":"x"}}"#, "key: google.x", errorCode: "INVALID_ARGUMENT"),
        Slip(#"{"token":"t","android":{"ttl":"3600"}}"#, "'message.android.ttl'"),
        Slip(#"{"token":"t","android":{"ttl":3600}}"#, "'message.android.ttl'"),
        Slip(#"{"token":"t","android":{"ttl":"2419201s"}}"#, "28 days", errorCode: "INVALID_ARGUMENT"),
        Slip(#"{"token":"t","android":{"priority":"URGENT"}}"#, "'message.android.priority' (TYPE_ENUM)"),
        Slip(#"{"token":"t","android":{"collapse_key":1}}"#, "'message.android.collapse_key'"),
        Slip(#"{"token":"t","android":{"collapse_key":"a","collapseKey":"b"}}"#, "already set"),
        Slip(#"{"token":"t","topic":"news"}"#, "oneof"),
        Slip(#"{"data":{}}"#, "Recipient of the message is not set.", errorCode: "INVALID_ARGUMENT"),
        Slip(#"{"token":"with space"}"#, "not a valid FCM registration token", errorCode: "INVALID_ARGUMENT"),
        Slip(#"{"token":""}"#, "not a valid FCM registration token", errorCode: "INVALID_ARGUMENT"),
    ]

    @Test(arguments: slips) func `refuses a message that Google's schema does not know`(slip: Slip) async throws {
        try await GoogleFixture.run(.open) { fixture in
            let answer = try fixture.send("{\"message\":\(slip.message)}", bearer: "x")
            #expect(answer.status == 400)
            #expect(answer.error["status"] as? String == "INVALID_ARGUMENT")
            #expect((answer.error["message"] as? String)?.contains(slip.words) == true, "\(answer.body)")
            #expect(answer.errorCode == slip.errorCode)
        }
    }

    @Test func `without strictness only what no answer can do without is refused`() async throws {
        try await GoogleFixture.run(.init(checksAccessTokens: false, isStrict: false)) { fixture in
            let loose = #"{"message":{"token":"t","sound":"x","data":{"from":"x"}}}"#
            let found = try [loose, #"{"message":{"token":"t","data":{"n":7}}}"#, "{"].map {
                try fixture.send($0, bearer: "x").status
            }
            #expect(found == [200, 400, 400])
        }
    }

    @Test func `takes 4,096 bytes of keys and values and not one more`() async throws {
        try await GoogleFixture.run(.open) { fixture in
            func status(_ count: Int) throws -> Int {
                let value = String(repeating: "v", count: count - 1)
                return try fixture.send(#"{"message":{"token":"t","data":{"k":"\#(value)"}}}"#, bearer: "x").status
            }
            let found = try [4096, 4097].map(status)
            #expect(found == [200, 400])
        }
    }

    private static let named: [(String, Int, String, String?)] = [
        ("unregistered", 404, "NOT_FOUND", "UNREGISTERED"),
        ("sender-mismatch", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
        ("third-party-auth", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
        ("bad-token", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("bad-payload", 400, "INVALID_ARGUMENT", nil),
        ("device-quota", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
        ("project-quota", 429, "RESOURCE_EXHAUSTED", nil),
        ("unauthenticated", 401, "UNAUTHENTICATED", nil),
        ("permission-denied", 403, "PERMISSION_DENIED", nil),
        ("not-found", 404, "NOT_FOUND", nil),
        ("internal", 500, "INTERNAL", "INTERNAL"),
        ("unavailable", 503, "UNAVAILABLE", "UNAVAILABLE"),
        ("unspecified", 500, "UNKNOWN", "UNSPECIFIED_ERROR"),
    ]

    @Test(arguments: named) func `misbehaves by name`(
        name: String, httpStatus: Int, status: String, errorCode: String?
    ) async throws {
        try await GoogleFixture.run(.open) { fixture in
            let answer = try fixture.send(GoogleFixture.message(to: "fa-\(name):APA91b"), bearer: "x")
            #expect(answer.status == httpStatus)
            #expect(answer.error["code"] as? Int == httpStatus)
            #expect(answer.error["status"] as? String == status)
            #expect(answer.errorCode == errorCode)
        }
    }

    @Test func `names the field of a bad token, and the quota of a 429`() async throws {
        try await GoogleFixture.run(.open) { fixture in
            func answer(_ token: String) throws -> Curl.Answer {
                try fixture.send(GoogleFixture.message(to: token), bearer: "x")
            }
            let violations = try answer("fa-bad-token-field").details.last?["fieldViolations"] as? [[String: Any]]
            #expect(violations?.first?["field"] as? String == "message.token")
            #expect(try answer("fa-project-quota").headers["retry-after"] == "2")
            #expect(try answer("fa-project-quota-date").headers["retry-after"]?.hasSuffix(" GMT") == true)
            #expect(try answer("fa-project-quota-silent").headers["retry-after"] == nil)
            let page = try answer("fa-page-401")
            #expect(page.status == 401 && page.headers["content-type"]?.hasPrefix("text/html") == true)
            let empty = try answer("fa-empty-404")
            #expect(empty.status == 404 && empty.body.isEmpty)
        }
    }

    @Test func `misbehaves as often as the token says`() async throws {
        try await GoogleFixture.run(.open) { fixture in
            func status(_ token: String) throws -> Int {
                try fixture.send(GoogleFixture.message(to: token), bearer: "x").status
            }
            let once = try ["fa5031a", "fa5031a"].map(status)
            #expect(once == [503, 200])
            let twice = try ["fa-internal-2-b", "fa-internal-2-b", "fa-internal-2-b"].map(status)
            #expect(twice == [500, 500, 200])
            let others = try ["fa404x", "fa404x", "fa418", "father", "fa-nothing"].map(status)
            #expect(others == [404, 404, 418, 200, 200])
        }
    }

    @Test func `leaves requests unanswered in each of its ways`() async throws {
        try await GoogleFixture.run(.open) { fixture in
            func exit(_ token: String) throws -> Int32 {
                try fixture.send(
                    GoogleFixture.message(to: token), bearer: "x", extra: ["--max-time", "5"]
                ).exitStatus
            }
            let exits = try ["fa-silence", "fa-reset", "fa-closed", "fa003"].map(exit)
            #expect(exits[0] == 28, "curl's timeout")
            #expect(exits[1] == 92, "curl's stream error")
            #expect(exits[2] != 0)
            #expect(exits[3] == 0)
            #expect(await fixture.fcm.requests.map(\.reason) == ["silence", "reset", "closed", "slow"])
        }
    }

    @Test func `holds what has arrived until it is told to go on`() async throws {
        try await GoogleFixture.run(.open) { fixture in
            await fixture.fcm.holdAnswers()
            async let answer = fixture.send(GoogleFixture.message(), bearer: "x")
            _ = await fixture.fcm.requests(reaching: 1)
            #expect(await fixture.fcm.waiting == 1)
            #expect(await fixture.fcm.statistics.accepted == 0)
            await fixture.fcm.resumeAnswering()
            let status = try await answer.status
            #expect(status == 200)
        }
    }

    @Test func `puts each request on record, and no credential`() async throws {
        let log = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString).log")
        let asks = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString).log")
        defer { for file in [log, asks] { try? FileManager.default.removeItem(at: file) } }
        try await GoogleFixture.run(.init(log: .file(log.path), endpointLog: .file(asks.path))) { fixture in
            let assertion = try fixture.assertion()
            let bearer = try #require(try fixture.ask(assertion).object["access_token"] as? String)
            #expect(try fixture.send(GoogleFixture.message(to: "fa-unregistered"), bearer: bearer).status == 404)
            let line = try String(contentsOf: log, encoding: .utf8)
            let entry = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            #expect(entry["service"] as? String == "fcm")
            #expect(entry["status"] as? Int == 404 && entry["reason"] as? String == "UNREGISTERED")
            #expect((entry["jwt"] as? [String: Any])?["kid"] as? String == fixture.account.keyID)
            #expect(((entry["body"] as? [String: Any])?["message"] as? [String: Any])?["token"] != nil)
            #expect(!line.contains(bearer))
            let ask = try String(contentsOf: asks, encoding: .utf8)
            let asked = try #require(try JSONSerialization.jsonObject(with: Data(ask.utf8)) as? [String: Any])
            #expect(asked["service"] as? String == "token" && asked["status"] as? Int == 200)
            for part in assertion.split(separator: ".") { #expect(!ask.contains(part)) }
            #expect(!ask.contains(bearer))
        }
    }

    @Test func `answers a number of requests as told in process`() async throws {
        try await GoogleFixture.run(.open) { fixture in
            await fixture.fcm.misbehave(.fault(.projectQuota(retryAfter: .seconds(90))), times: 1)
            let first = try fixture.send(GoogleFixture.message(), bearer: "x")
            #expect(first.status == 429 && first.headers["retry-after"] == "90")
            #expect(try fixture.send(GoogleFixture.message(), bearer: "x").status == 200)
        }
    }

    @Test func `100 streams at once are served, one more ends the connection as at Google`() async throws {
        try await GoogleFixture.run(.open) { fixture in
            let body = fixture.directory + "/body.json"
            try GoogleFixture.message().write(toFile: body, atomically: true, encoding: .utf8)
            let url = "https://localhost:\(fixture.fcmPort)/v1/projects/p/messages:send"
            let headers = ["--header", "content-type: application/json", "--header", "authorization: Bearer x"]
            let load = ["-n", "500", "-c", "1", "-m", "100", "-d", body] + headers + [url]
            let output = try Curl.run("h2load", load).output
            #expect(output.contains("500 done, 500 succeeded, 0 failed"), "\(output)")
            #expect(await fixture.fcm.statistics.protocolErrors == 0)
            let port = String(fixture.fcmPort)
            let greedy = try Curl.run("python3", ["-c", Self.greedyClient, port, fixture.directory + "/ca.pem"])
            #expect(greedy.output == "1 exceeded_max_concurrent_streams\n", "\(greedy.problem)")
            #expect(await fixture.fcm.statistics.protocolErrors == 1)
        }
    }

    /// Opens 101 streams after it has read and acknowledged the server's SETTINGS, and prints the first GOAWAY.
    private static let greedyClient = """
        import socket, ssl, struct, sys
        context = ssl.create_default_context(cafile=sys.argv[2])
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30)
        peer = context.wrap_socket(plain, server_hostname="localhost")
        peer.settimeout(30)

        def frame(kind, flags, stream, payload=b""):
            return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

        def take(count):
            data = b""
            while len(data) < count:
                piece = peer.recv(count - len(data))
                if not piece:
                    sys.exit("closed without GOAWAY")
                data += piece
            return data

        def read():
            head = take(9)
            return head[3], head[4], take(int.from_bytes(head[:3], "big"))

        def literal(name, value):
            return b"\\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

        peer.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + frame(4, 0, 0))
        while read()[0] != 4:
            pass
        block = b"".join(literal(*pair) for pair in [
            (b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/")])
        peer.sendall(frame(4, 1, 0) + b"".join(frame(1, 4, 2 * i + 1, block) for i in range(101)))
        while True:
            kind, flags, payload = read()
            if kind == 7:
                print(int.from_bytes(payload[4:8], "big"), payload[8:].decode())
                break
        """
}
