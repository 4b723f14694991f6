import FakeProviders
import Foundation
import Support
import Testing

/// What FCM says of one token or one app concerns that one alone: nobody else waits, and nothing is cleared without
/// proof.
@Suite(.serialized, .timeLimit(.minutes(2))) struct FCMFaultTests {
    /// A fault of one target: how the stand-in is asked for it, and what becomes of its notification.
    struct Fault: CustomTestStringConvertible {
        let token: String
        let outcome: String
        let status: String
        /// Whether the device loses its token.
        var clears = false

        var testDescription: String { token }
    }

    static let faults = [
        Fault(token: "fa-unregistered", outcome: "unregistered", status: "dispatched", clears: true),
        Fault(token: "fa-sender-mismatch", outcome: "misconfigured", status: "pending"),
        Fault(token: "fa-third-party-auth", outcome: "misconfigured", status: "pending"),
        Fault(token: "fa-device-quota", outcome: "throttled", status: "pending"),
        Fault(token: "fa-bad-payload", outcome: "rejected", status: "failed"),
        Fault(token: "fa-bad-argument", outcome: "rejected", status: "failed"),
        Fault(token: "fa-internal", outcome: "retry", status: "pending"),
    ]

    @Test(arguments: faults)
    func aFaultOfOneTokenDelaysNobodyElse(fault: Fault) async throws {
        try await GoogleStage.on { stage, google in
            let worker = try stage.startWorker(google.environment.merging(["POSTBELL_PROVIDERS": "fcm"]) { $1 })
            // The lane is proven by this one.
            try await google.enqueue("first", on: stage)
            try await stage.waitFor("first", "dispatched")
            try await google.enqueue("odd", token: "\(fault.token):0123456789", on: stage)
            try await eventually("the odd one is answered") { try await !stage.outcomes("odd").isEmpty }
            for number in 1...50 { try await google.enqueue("good\(number)", on: stage) }
            for number in 1...50 {
                try await stage.waitFor("good\(number)", "dispatched")
                #expect(try await stage.outcomes("good\(number)") == ["delivered"])
            }
            #expect(try await stage.outcomes("odd") == [fault.outcome])
            try await stage.waitFor("odd", fault.status)
            if fault.clears {
                try await eventually("the dead token is cleared") {
                    try await Self.cleared(stage) == ["odd token_invalid"]
                }
                #expect(try await Self.invalidations(stage) == 1)
            }
            #expect(!worker.errors.contains("is paused"))
            #expect(try await worker.stop() == 0)
            #expect(try await Self.cleared(stage) == (fault.clears ? ["odd token_invalid"] : []))
            #expect(try await Self.invalidations(stage) == (fault.clears ? 1 : 0))
            #expect(try await stage.audit() == [])
        }
    }

    @Test func anAppWithoutACredentialDelaysNobodyElse() async throws {
        try await GoogleStage.on { stage, google in
            let settings = ["POSTBELL_PROVIDERS": "fcm", "FCM_APP": Stage.topic]
            let worker = try stage.startWorker(google.environment.merging(settings) { $1 })
            for number in 1...50 {
                try await google.enqueue("nobodys\(number)", app: "com.example.nobodys", on: stage)
            }
            for number in 1...50 { try await google.enqueue("good\(number)", on: stage) }
            for number in 1...50 { try await stage.waitFor("good\(number)", "dispatched") }
            try await eventually("the route is named") { worker.errors.contains("app=com.example.nobodys") }
            #expect(try await stage.status("nobodys1") == "pending")
            #expect(await google.fcm.requests.count == 50)
            #expect(try await worker.stop() == 0)
            #expect(try await Self.cleared(stage) == [])
            #expect(try await stage.audit() == [])
        }
    }

    private static func cleared(_ stage: Stage) async throws -> [String] {
        try await stage.texts(
            "SELECT principal_id || ' ' || disabled_reason FROM postbell.devices WHERE token IS NULL ORDER BY 1")
    }

    private static func invalidations(_ stage: Stage) async throws -> Int {
        try await stage.texts("SELECT 1 FROM postbell.events WHERE name = 'device.push_token_invalidated'").count
    }
}
