import FakeProviders
import Foundation
import Support
import Testing

/// `POSTBELL_MAX_CONSECUTIVE_FAILURES` in the real worker: failures in a row clear a token where others succeed, and
/// nowhere else.
@Suite(.serialized, .timeLimit(.minutes(2))) struct RepeatedFailureTests {
    private static let devices =
        "SELECT concat_ws(' ', principal_id, status, failure_count, disabled_reason) FROM postbell.devices "
        + "WHERE principal_id !~ '^good' ORDER BY principal_id"
    private static let events =
        """
        SELECT concat_ws(' ', e.detail ->> 'reason', o.dedupe_key) FROM postbell.events e
        LEFT JOIN postbell.outbox o ON o.id = (e.detail ->> 'notification_id')::uuid
        WHERE e.name = 'device.push_token_invalidated'
        """

    private static func succeed(_ count: Int, on stage: Stage) async throws {
        for number in 1...count {
            try await stage.register("good\(number)", token: "0a\(String(format: "%06d", number))")
            try await stage.enqueue("good\(number)", key: "good\(number)")
        }
        for number in 1...count { try await stage.waitFor("good\(number)", "dispatched") }
    }

    @Test func failuresInARowClearATokenInAHealthyLane() async throws {
        try await Stage.on(.postgres15) { stage in
            let worker = try stage.startWorker(["POSTBELL_MAX_CONSECUTIVE_FAILURES": "3"])
            try await Self.succeed(40, on: stage)
            // One that fails always, and one that fails twice and succeeds, two times over.
            try await stage.register("always", token: "fa500a")
            try await stage.register("twice", token: "fa5002")
            try await stage.enqueue("always", key: "always")
            try await stage.enqueue("twice", key: "twice")
            try await stage.waitFor("twice", "dispatched")
            try await eventually("the token is cleared") {
                try await stage.texts("SELECT token IS NULL FROM postbell.devices WHERE principal_id = 'always'")
                    == ["true"]
            }
            #expect(try await stage.outcomes("always") == ["retry", "retry", "retry"])
            #expect(try await stage.outcomes("twice") == ["retry", "retry", "delivered"])
            #expect(
                try await stage.texts(Self.devices) == ["always disabled 3 repeated_failures", "twice active 0"])
            #expect(try await stage.texts(Self.events) == ["repeated_failures always"])
            // Nobody is left to send to: the notification ends, and the provider is not asked again.
            try await eventually("the notification has ended") { try await stage.status("always") != "pending" }
            #expect(try await worker.stop() == 0)
            let asked = await stage.apns.requests.filter { $0.token.hasPrefix("fa500a") }.count
            #expect(asked == 3)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func withoutTheSettingNoNumberOfFailuresClearsAToken() async throws {
        try await Stage.on(.postgres15) { stage in
            let worker = try stage.startWorker()
            try await Self.succeed(40, on: stage)
            try await stage.register("always", token: "fa500a")
            try await stage.enqueue("always", key: "always")
            try await stage.waitFor("always", "failed")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.texts(Self.devices) == ["always active 5"])
            #expect(try await stage.texts(Self.events) == [])
        }
    }

    /// A provider that fails for everybody says nothing about a device.
    @Test func aProviderThatFailsForAllClearsNobody() async throws {
        try await Stage.on(.postgres15) { stage in
            // Three attempts each, and a budget that lets all of them out.
            let worker = try stage.startWorker([
                "POSTBELL_MAX_CONSECUTIVE_FAILURES": "3", "POSTBELL_RETRY": "1s,1s", "POSTBELL_RETRY_BUDGET": "100%",
            ])
            // The lane is proven, so that it is its failures alone that make it unfit to judge.
            try await Self.succeed(10, on: stage)
            for number in 1...5 {
                try await stage.register("p\(number)", token: "fa500b\(String(format: "%06d", number))")
                try await stage.enqueue("p\(number)", key: "p\(number)")
            }
            for number in 1...5 { try await stage.waitFor("p\(number)", "failed") }
            #expect(try await worker.stop() == 0)
            for number in 1...5 {
                #expect(try await stage.outcomes("p\(number)") == ["retry", "retry", "retry"])
            }
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["0"])
            #expect(try await stage.texts(Self.events) == [])
            #expect(try await stage.audit() == [])
        }
    }
}
