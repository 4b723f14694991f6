import FakeProviders
import Foundation
import Support
import Testing

/// Providers behind an HTTP proxy, in the real worker.
@Suite(.serialized) struct ProxyTests {
    private static let secret = "hush-hush"

    private func settings(_ proxy: ConnectProxy) -> [String: String] {
        ["POSTBELL_PROXY": "http://ada:\(Self.secret)@127.0.0.1:\(proxy.port)"]
    }

    /// A login that the proxy does not take is the lane's trouble: it is said, rows wait, and nothing has been sent.
    @Test func aProxyThatAnswers407HoldsTheLaneAndLosesNothing() async throws {
        try await Stage.on(.postgres15) { stage in
            let proxy = try ConnectProxy(refusingBy: 407)
            defer { proxy.stop() }
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            let worker = try stage.startWorker(settings(proxy))
            try await eventually("the lane is down") {
                worker.errors.split(separator: "\n").contains {
                    $0.contains("lane is down") && $0.contains("lane=apns/sandbox/default") && $0.contains("407")
                }
            }
            try await eventually("the registry knows") {
                try await stage.texts("SELECT count(*) FROM postbell.lane_health WHERE state = 'down'") != ["0"]
            }
            let status = try await stage.postbell("status", overriding: settings(proxy))
            #expect(status.status == 1)
            let alarm = status.output.split(separator: "\n").first { $0.contains("apns/sandbox/default") }
            #expect(alarm?.contains("has no connection") == true && alarm?.contains("407") == true, "\(status.output)")
            let check = try await stage.postbell("check", overriding: settings(proxy))
            #expect(check.status == 4)
            let endpoint = try #require(check.lines("fail  endpoint").first, "\(check.output)")
            #expect(endpoint.contains("407") && endpoint.contains("POSTBELL_PROXY"), "\(endpoint)")
            #expect(await stage.apns.requests.isEmpty)
            #expect(try await stage.status("k1") == "pending")
            #expect(try await stage.texts("SELECT count(*) FROM postbell.ledger") == ["0"], "nothing spent")
            proxy.letThrough()
            try await stage.waitFor("k1", "dispatched")
            #expect(try await stage.outcomes("k1") == ["delivered"])
            #expect(proxy.requests.allSatisfy { $0.hasPrefix("CONNECT localhost:") })
            for text in [worker.errors, status.output, check.output, check.errors] {
                #expect(!text.contains(Self.secret) && !text.contains("YWRhOmh1c2g"), "\(text)")
            }
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func accessTokensTakeTheSameWay() async throws {
        try await GoogleStage.on { stage, google in
            let proxy = try ConnectProxy()
            defer { proxy.stop() }
            let worker = try stage.startWorker(google.environment.merging(settings(proxy)) { _, new in new })
            try await google.enqueue("bob", on: stage)
            try await stage.waitFor("bob", "dispatched")
            let targets = Set(proxy.requests.compactMap { $0.split(separator: " ").dropFirst().first.map(String.init) })
            for name in ["POSTBELL_FCM_ENDPOINT", "POSTBELL_FCM_TOKEN_ENDPOINT"] {
                let host = google.environment[name]?.replacing("https://", with: "") ?? ""
                #expect(targets.contains(host), "\(targets)")
            }
            #expect(try await worker.stop() == 0)
        }
    }

    @Test(arguments: [["no_proxy": "localhost"], ["POSTBELL_PROXY": "none"]])
    func anExceptionIsReachedDirectly(change: [String: String]) async throws {
        try await Stage.on(.postgres15) { stage in
            let proxy = try ConnectProxy(refusingBy: 407)
            defer { proxy.stop() }
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            let general = ["https_proxy": "http://127.0.0.1:\(proxy.port)"]
            let worker = try stage.startWorker(general.merging(change) { _, new in new })
            try await stage.waitFor("k1", "dispatched")
            #expect(proxy.requests.isEmpty)
            #expect(try await worker.stop() == 0)
        }
    }
}
