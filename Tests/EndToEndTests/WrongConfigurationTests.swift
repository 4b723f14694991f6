import FakeProviders
import Foundation
import Support
import Testing

/// A wrong environment, topic or key looks like many dead devices: nobody is wiped, and all is delivered once it is
/// mended.
@Suite(.serialized, .timeLimit(.minutes(5))) struct WrongConfigurationTests {
    /// What Apple answers when a token is of the other environment, a token of another app, a topic not the key's, and
    /// the key of the other environment.
    static let answers = [
        FakeAPNSVerdict.badDeviceToken, .otherTopic, FakeAPNSVerdict(status: 400, reason: "TopicDisallowed"),
        .otherEnvironment,
    ]

    @Test(arguments: answers, [1, 3])
    func aFewDevicesKeepTokenAndRowUntilItIsMended(answer: FakeAPNSVerdict, devices: Int) async throws {
        try await Self.wrongThenMended(answer, devices: devices)
    }

    @Test(arguments: zip(answers, [10_000, 2000, 2000, 2000]))
    func aRegistryKeepsItsTokensAndRowsUntilItIsMended(answer: FakeAPNSVerdict, devices: Int) async throws {
        try await Self.wrongThenMended(answer, devices: devices)
    }

    private static func wrongThenMended(_ answer: FakeAPNSVerdict, devices: Int) async throws {
        try await Stage.on(.postgres15) {
            $0.keptRequests = 0
            $0.countsAccepts = true
            $0.verdict = answer
        } _: { stage in
            let crowd = Crowd(rows: devices)
            try await crowd.fill(stage)
            let worker = try stage.startWorker(["POSTBELL_LOG_LEVEL": "info"])
            try await eventually("it is told") { !Self.alarms(worker).isEmpty }
            try await eventually("every row waits again") {
                try await stage.texts(
                    "SELECT count(*) FROM postbell.places WHERE place = 'queue'") == ["\(devices)"]
            }
            let alarms = Self.alarms(worker)
            #expect(alarms.count == 1, "\(alarms)")
            #expect(alarms.allSatisfy { $0.contains("environment=sandbox") && $0.contains("app=\(Stage.topic)") })
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["0"])
            await stage.apns.answerAll(with: nil)
            worker.send(SIGHUP)
            try await crowd.waitUntilReached(stage)
            #expect(try await worker.stop() == 0)
            try await crowd.expectExactlyOnce(stage)
            let delivered = try await stage.texts(
                "SELECT count(*) FROM postbell.notifications WHERE status = 'dispatched'")
            #expect(delivered == ["\(devices)"])
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["0"])
            #expect(try await Self.invalidations(stage) == 0)
            #expect(Self.alarms(worker).count == 1)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aReplacedKeyFileDeliversWhatWaitedAfterSIGHUP() async throws {
        try await Stage.on(.postgres15, keyMatches: false) {
            $0.countsAccepts = true
        } _: { stage in
            let crowd = Crowd(rows: 30)
            try await crowd.fill(stage)
            let worker = try stage.startWorker()
            try await eventually("it is told") { !Self.alarms(worker).isEmpty }
            try await eventually("every row waits again") {
                try await stage.texts("SELECT count(*) FROM postbell.places WHERE place = 'queue'") == ["30"]
            }
            try stage.useKnownKey()
            worker.send(SIGHUP)
            try await crowd.waitUntilReached(stage)
            #expect(try await worker.stop() == 0)
            try await crowd.expectExactlyOnce(stage)
            #expect(try await Self.invalidations(stage) == 0)
        }
    }

    @Test func aRestartDeliversWhatWaitedForACorrectedSetting() async throws {
        try await Stage.on(.postgres15) {
            $0.countsAccepts = true
            $0.verdict = .badDeviceToken
        } _: { stage in
            let crowd = Crowd(rows: 3)
            try await crowd.fill(stage)
            let wrong = try stage.startWorker()
            try await eventually("every row is held") {
                try await stage.texts("SELECT count(*) FROM postbell.deliveries WHERE outcome = 5") == ["3"]
            }
            #expect(try await wrong.stop() == 0)
            await stage.apns.answerAll(with: nil)
            let right = try stage.startWorker()
            try await crowd.waitUntilReached(stage)
            #expect(try await right.stop() == 0)
            try await crowd.expectExactlyOnce(stage)
        }
    }

    @Test func deadTokensAmongGoodOnesAreClearedWithTheirEvents() async throws {
        try await Stage.on(.postgres15) {
            $0.countsAccepts = true
        } _: { stage in
            let worker = try stage.startWorker()
            // The lane is proven by this one.
            try await stage.register("first", token: "0b")
            try await stage.enqueue("first", key: "first")
            try await stage.waitFor("first", "dispatched")
            let crowd = Crowd(rows: 200, badEvery: 20, badTokens: ["fa410a", "fa400a"])
            try await crowd.fill(stage)
            try await eventually("all is settled") {
                try await stage.texts("SELECT count(*) FROM postbell.places") == ["0"]
            }
            try await eventually("the dead ones lose their tokens") {
                try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["10"]
            }
            #expect(try await worker.stop() == 0)
            let dead = try await stage.texts(
                """
                SELECT DISTINCT substr(principal_id, 3)::int % 20 || ' ' || disabled_reason
                FROM postbell.devices WHERE token IS NULL
                """)
            #expect(dead == ["0 token_invalid"])
            #expect(try await Self.invalidations(stage) == 10)
            #expect(Self.alarms(worker) == [])
            #expect(try await stage.audit() == [])
        }
    }

    @Test func anOutageClearsNoTokenAndEndsInDelivery() async throws {
        try await Stage.on(.postgres15) {
            $0.countsAccepts = true
            $0.verdict = .unavailable
        } _: { stage in
            let crowd = Crowd(rows: 300)
            try await crowd.fill(stage)
            // Without the budget's patience, which scripts/faults looks at: after an outage it takes a minute.
            let worker = try stage.startWorker([
                "POSTBELL_RETRY": Array(repeating: "1s", count: 20).joined(separator: ","),
                "POSTBELL_RETRY_BUDGET": "100%",
            ])
            try await eventually("every row was refused, and most of them more than once") {
                let counts =
                    "SELECT count(DISTINCT notification_id) || ' ' || (count(*) > 500) FROM postbell.deliveries"
                return try await stage.texts(counts) == ["300 true"]
            }
            await stage.apns.answerAll(with: nil)
            try await crowd.waitUntilReached(stage)
            #expect(try await worker.stop() == 0)
            try await crowd.expectExactlyOnce(stage)
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["0"])
            #expect(try await stage.texts("SELECT max(failure_count) FROM postbell.devices") == ["0"])
            #expect(try await Self.invalidations(stage) == 0)
        }
    }

    /// Lines at the level at which somebody is to be woken.
    private static func alarms(_ worker: WorkerProcess) -> [String] {
        worker.errors.split(separator: "\n").map(String.init).filter { $0.contains("level=error") }
    }

    private static func invalidations(_ stage: Stage) async throws -> Int {
        let events = "SELECT 1 FROM postbell.events WHERE name = 'device.push_token_invalidated'"
        return try await stage.texts(events).count
    }
}
