import FakeProviders
import Foundation
import Support
import Testing

/// A provider whose connections come and go, with limits that jump up and down: nothing is lost, charged or sent twice.
@Suite(.serialized, .timeLimit(.minutes(5))) struct StormTests {
    @Test func aStormOfGoAwaysAndRefusalsCostsNoPushAndNoAttempt() async throws {
        let rows = 20_000
        try await Stage.on(.postgres15) {
            $0.keptRequests = 0
            $0.countsAccepts = true
            $0.delay = .milliseconds(2)
            $0.rates = Self.storm
        } _: { stage in
            let crowd = Crowd(rows: rows, badEvery: 50, badTokens: ["fa410a", "fa400a"])
            try await crowd.fill(stage)
            let worker = try stage.startWorker(["POSTBELL_LOG_LEVEL": "info"])
            try await crowd.waitUntilReached(stage)
            #expect(try await worker.stop() == 0)
            try await crowd.expectExactlyOnce(stage)
            // Every row of a good device has one line on the ledger: no attempt was spent on what was not sent.
            let outcomes = try await crowd.outcomesOfGood(stage)
            #expect(outcomes == ["delivered t 1 \(crowd.good)"], "\(outcomes)")
            let failed = "SELECT count(*) FROM postbell.notifications WHERE status = 'failed'"
            #expect(try await stage.texts(failed) == ["0"])
            let statistics = await stage.apns.statistics
            #expect(statistics.protocolErrors == 0)
            #expect(statistics.goAways > rows / 500, "\(statistics)")
            #expect(statistics.limitChanges > rows / 500, "\(statistics)")
            #expect(statistics.unanswered > rows / 1000, "\(statistics)")
            #expect(try await stage.audit() == [])
        }
    }

    private static var storm: MisbehaviourRates {
        var rates = MisbehaviourRates()
        rates.seed = 4
        rates.goAwayAfter = 50...500
        rates.limitChangesAfter = 50...500
        rates.refusedPerMille = 10
        return rates
    }
}
