import FakeProviders
import Foundation
import Glibc
import Support
import Testing

/// `postbell check` beside a provider and a database as they can be.
@Suite(.serialized) struct DoctorTests {
    @Test(arguments: DatabaseServer.allCases)
    func whereAWorkerWouldWorkAllIsOk(server: DatabaseServer) async throws {
        try await Stage.on(server) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            let run = try await stage.postbell("check")
            #expect(run.status == 0, "\(run.output)")
            #expect(run.errors.isEmpty)
            #expect(run.lines("fail").isEmpty && run.lines("warn").isEmpty, "\(run.output)")
            #expect(run.lines("ok    credential").count == 2)
            let endpoint = try #require(run.lines("ok    endpoint").first)
            #expect(endpoint.contains("for apns/production/default, apns/sandbox/default: HTTP/2 after "))
            #expect(run.lines("ok    routes").first?.hasSuffix("covered here: apns/sandbox/\(Stage.topic)") == true)
            #expect(await stage.apns.requests.isEmpty, "the doctor sends nothing")
            let changes = "SELECT (SELECT count(*) FROM postbell.workers) + (SELECT count(*) FROM postbell.deliveries)"
            #expect(try await stage.texts(changes) == ["0"])
        }
    }

    private static let endpoints: [(overrides: [String: String], status: Int32, finding: String, remedy: String)] = [
        (
            ["POSTBELL_CA_FILE": ""], 4, "unknown_authority: ",
            "install the system's CA certificates, or name the CA in POSTBELL_CA_FILE"
        ),
        (
            ["POSTBELL_APNS_ENDPOINT": "https://127.0.0.1:1"], 4, "connect: Connection refused",
            "let this machine reach the host and port (firewall, network policy)"
        ),
        (
            ["POSTBELL_APNS_ENDPOINT": "https://no-such-host.invalid"], 4, "name_resolution: ",
            "see that this machine resolves the name (DNS)"
        ),
    ]

    @Test(arguments: endpoints)
    func anEndpointThatCannotBeUsedIsSaid(
        endpoint: (overrides: [String: String], status: Int32, finding: String, remedy: String)
    ) async throws {
        try await Stage.on(.postgres15) { stage in
            let run = try await stage.postbell("check", overriding: endpoint.overrides)
            #expect(run.status == endpoint.status, "\(run.output)")
            let lines = run.lines("fail")
            #expect(lines.count == 1, "\(run.output)")
            #expect(lines.first?.hasPrefix("fail  endpoint") == true)
            #expect(lines.first?.contains(": \(endpoint.finding)") == true, "\(lines)")
            #expect(lines.first?.hasSuffix("; \(endpoint.remedy)") == true, "\(lines)")
        }
    }

    @Test func anEndpointThatSaysNothingCostsTheConnectTimeout() async throws {
        try await Stage.on(.postgres15) { stage in
            let silent = try DatabaseForwarder(to: "host=/nowhere port=1")
            // Connections end up in its backlog; nobody takes them from there.
            silent.listenOnly()
            let run = try await stage.postbell(
                "check",
                overriding: [
                    "POSTBELL_APNS_ENDPOINT": "https://127.0.0.1:\(silent.port)", "POSTBELL_CONNECT_TIMEOUT": "1s",
                ])
            silent.stop()
            #expect(run.status == 4)
            #expect(
                run.lines("fail  endpoint").first?.contains("connect_timeout: not open after ") == true, "\(run.output)"
            )
        }
    }

    @Test func aMissingFileOfCAsIsAWrongConfiguration() async throws {
        try await Stage.on(.postgres15) { stage in
            let run = try await stage.postbell("check", overriding: ["POSTBELL_CA_FILE": "/nowhere/ca.pem"])
            #expect(run.status == 3)
            #expect(run.lines("fail  credential").first?.contains("; POSTBELL_CA_FILE; ") == true, "\(run.output)")
        }
    }

    /// What such a proxy does to LISTEN: accepted, and nothing ever arrives.
    @Test func behindAProxyThatPoolsTransactionsNoNotificationArrives() async throws {
        try await Stage.on(.postgres15) { stage in
            let proxy = try DatabaseForwarder(
                to: stage.database.server.connectionString(), poolingTransactions: true)
            proxy.open()
            let url = "\(stage.databaseURL) host=127.0.0.1 port=\(proxy.port) sslmode=disable gssencmode=disable"
            let run = try await stage.postbell("check", overriding: ["DATABASE_URL": url])
            #expect(run.status == 1, "\(run.output)")
            #expect(run.lines("fail").count == 1, "\(run.output)")
            #expect(run.lines("fail  wake").first?.hasSuffix("or set POSTBELL_WAKE=poll") == true)
            let polling = try await stage.postbell(
                "check", overriding: ["DATABASE_URL": url, "POSTBELL_WAKE": "poll"])
            #expect(polling.status == 0, "\(polling.output)")
            #expect(polling.lines("ok    wake").first?.hasSuffix("not used: POSTBELL_WAKE=poll") == true)
            proxy.stop()
        }
    }

    @Test func aRouteWithoutACredentialAndWorkThatWaitsAreNamed() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            try await stage.run("UPDATE postbell.queue SET due_at = now() - interval '2 hours'")
            let other = try await stage.postbell("check", overriding: ["APNS_TOPIC": "com.example.other"])
            #expect(other.status == 0, "\(other.output)")
            let warning = try #require(other.lines("warn  routes").first)
            #expect(
                warning.contains("apns/sandbox/\(Stage.topic) is covered by no credential here and served by no worker")
            )
            #expect(other.lines("ok    queue").count == 1)
            let run = try await stage.postbell("check")
            #expect(run.status == 1)
            let queue = try #require(run.lines("fail  queue").first)
            // Two hours and what has passed since.
            #expect(queue.contains("1 rows wait, the oldest due one for 72"))
            #expect(queue.contains(" s on apns/sandbox/\(Stage.topic)"))
        }
    }
}
