import FakeProviders
import Foundation
import Support
import Testing

/// Gates of the agent platform that are about the whole way from row to provider; gate 16 is in the conformance suite.
@Suite(.serialized) struct GateTests {
    private static let events = "SELECT count(*) FROM postbell.events WHERE name = 'device.push_token_invalidated'"

    @Test func `gate 14 notify token_revoked_on_410: a dead token is invalidated once, and trouble clears none`()
        async throws
    {
        try await Stage.on(.postgres15) { stage in
            // Eva's good device proves the lane, so that BadDeviceToken is believed.
            try await stage.register("eva", token: "0a0b0c0d")
            let worker = try stage.startWorker()
            try await stage.enqueue("eva", key: "good")
            try await stage.waitFor("good", "dispatched")
            let dead = ["fa410a", "fa400a"]
            for token in dead {
                try await stage.register(token, token: token)
                try await stage.enqueue(token, key: "first-\(token)")
                try await stage.waitFor("first-\(token)", "dispatched")
                #expect(try await stage.outcomes("first-\(token)") == ["unregistered"])
            }
            try await eventually("both tokens are cleared, with one event each") {
                try await stage.texts(Self.events) == ["2"]
            }
            for token in dead {
                #expect(
                    try await stage.texts("SELECT status FROM postbell.devices WHERE principal_id = '\(token)'")
                        == ["disabled"])
                try await stage.enqueue(token, key: "next-\(token)")
                #expect(
                    try await stage.texts(
                        """
                        SELECT r.provider FROM postbell.queue q JOIN postbell.routes r USING (route_no)
                        JOIN postbell.outbox o ON o.id = q.notification_id WHERE o.dedupe_key = 'next-\(token)'
                        """) == ["none"])
            }
            for token in ["fa5001", "fa5031", "fa4291"] {
                try await stage.register(token, token: token)
                try await stage.enqueue(token, key: token)
            }
            try await eventually("each trouble was answered") {
                try await stage.texts(
                    """
                    SELECT count(DISTINCT provider_status) FROM postbell.ledger WHERE provider_status IN (429, 500, 503)
                    """) == ["3"]
            }
            #expect(try await worker.stop() == 0)
            #expect(try await stage.texts(Self.events) == ["2"])
            let kept = "SELECT count(*) FROM postbell.devices WHERE token IS NOT NULL AND status = 'active'"
            #expect(try await stage.texts(kept) == ["4"])
            #expect(try await stage.audit() == [])
        }
    }

    /// The host of each environment is held by `APNSConfigurationTests`, minting within the window by
    /// `TokenCacheTests`.
    @Test func `gate 15 notify apns_auth: requests are signed and addressed rightly, and the log shows no secret`()
        async throws
    {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            let worker = try stage.startWorker()
            for key in ["k1", "k2"] {
                try await stage.enqueue("ada", key: key)
                try await stage.waitFor(key, "dispatched")
            }
            #expect(try await worker.stop() == 0)
            let requests = await stage.apns.requests
            let deadlines = try await stage.texts(
                "SELECT ceil(extract(epoch FROM expires_at))::bigint FROM postbell.outbox ORDER BY dedupe_key")
            for (index, request) in requests.enumerated() {
                #expect(request.keyID == Stage.keyID && request.status == 200)
                #expect(request.issuedAt != nil && request.issuedAt == requests[0].issuedAt)
                #expect(request.headers["apns-topic"] == Stage.topic && request.headers["apns-push-type"] == "alert")
                #expect(request.headers["apns-priority"] == "10")
                #expect(request.headers["apns-collapse-id"] == "k\(index + 1)")
                #expect(request.headers["apns-expiration"] == deadlines[index])
            }
            #expect(requests.count == 2)
            let key = try String(contentsOf: stage.directory.appending(path: "key.p8"), encoding: .utf8)
            let secrets = key.split(separator: "\n").filter { !$0.hasPrefix("-") }.map(String.init) + ["0a0b0c0d"]
            for secret in secrets { #expect(!worker.errors.contains(secret)) }
            #expect(!secrets.isEmpty && !worker.errors.contains("bearer") && !worker.errors.contains("eyJ"))
        }
    }
}
