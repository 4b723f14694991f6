import FakeProviders
import Foundation
import Support
import Testing

/// A rejected push lowers the stream limit to 1 until the next accepted one, as the real service has been seen to do.
@Suite(.serialized, .timeLimit(.minutes(5))) struct StreamLimitTests {
    @Test func deadTokensThatLowerTheLimitCostNoGoodPush() async throws {
        try await Stage.on(.postgres15) {
            $0.keptRequests = 0
            $0.countsAccepts = true
            $0.throttlesAfterRejection = true
            $0.delay = .milliseconds(20)
        } _: { stage in
            let crowd = Crowd(rows: 5000, badEvery: 5, badTokens: ["fa410a"])
            try await crowd.fill(stage)
            let worker = try stage.startWorker(["POSTBELL_LOG_LEVEL": "info"])
            try await crowd.waitUntilReached(stage)
            try await eventually("the dead ones are settled") {
                try await stage.texts("SELECT count(*) FROM postbell.places") == ["0"]
            }
            #expect(try await worker.stop() == 0)
            try await crowd.expectExactlyOnce(stage)
            let outcomes = try await crowd.outcomesOfGood(stage)
            #expect(outcomes == ["delivered t 1 \(crowd.good)"], "\(outcomes)")
            let statistics = await stage.apns.statistics
            #expect(statistics.protocolErrors == 0, "the client opened a stream too many")
            #expect(statistics.limitChanges > 20, "\(statistics)")
            #expect(statistics.rejected == 1000)
            let cleared = "SELECT count(*) FROM postbell.devices WHERE token IS NULL"
            #expect(try await stage.texts(cleared) == ["1000"])
            #expect(try await stage.audit() == [])
        }
    }

    @Test func theNextBatchAfterTheLimitHasRisenFillsIt() async throws {
        try await Stage.on(.postgres15) {
            $0.throttlesAfterRejection = true
            $0.countsAccepts = true
        } _: { stage in
            let first = Crowd(rows: 1001, name: "first")
            let second = Crowd(rows: 2000, name: "second")
            try await first.register(stage)
            try await second.register(stage)
            // As many leases as it takes: what is held back here takes longer than a real answer.
            let worker = try stage.startWorker([
                "POSTBELL_CONNECTIONS": "1", "POSTBELL_REQUEST_TIMEOUT": "60s", "POSTBELL_LEASE": "3m",
                "POSTBELL_STOP_TIMEOUT": "2m",
            ])
            try await stage.register("warm", token: "0b")
            try await stage.enqueue("warm", key: "warm")
            try await stage.waitFor("warm", "dispatched")
            await stage.apns.holdAnswers()
            try await first.enqueue(stage)
            try await stage.waits(1000)
            await stage.apns.answer(oldest: 999)
            try await stage.waits(2)
            // Whoever is last is called dead, and the limit falls with it.
            await stage.apns.answerAll(with: FakeAPNSVerdict(status: 410, reason: "Unregistered"))
            await stage.apns.answer(oldest: 2)
            await stage.apns.answerAll(with: nil)
            try await second.enqueue(stage)
            try await stage.waits(1)
            // One accept raises the limit again. Nothing else is answered from here on: that the limit is full then
            // shows that it took one round trip.
            let before = await stage.apns.statistics.requests
            await stage.apns.answer(oldest: 1)
            try await stage.waits(1000)
            #expect(await stage.apns.statistics.requests == before + 1000)
            await stage.apns.resumeAnswering()
            try await second.waitUntilReached(stage)
            #expect(try await worker.stop() == 0)
            #expect(await stage.apns.statistics.protocolErrors == 0)
            #expect(await stage.apns.accepts.values.allSatisfy { $0 == 1 })
            #expect(try await second.outcomesOfGood(stage) == ["delivered t 1 2000"])
            #expect(try await stage.audit() == [])
        }
    }
}

extension Stage {
    /// Waits until exactly so many requests wait for their answer.
    func waits(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await eventually(
            "\(count) requests wait", { await apns.waiting == count }, sourceLocation: sourceLocation)
    }
}
