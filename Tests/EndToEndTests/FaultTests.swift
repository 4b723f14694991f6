import FakeProviders
import Foundation
import Support
import Testing

/// Faults between the worker and its surroundings: halted, cut off, stopped at a bad moment.
@Suite(.serialized, .timeLimit(.minutes(3))) struct FaultTests {
    private static let shortLease = ["POSTBELL_LEASE": "5s", "POSTBELL_REQUEST_TIMEOUT": "2s"]

    private func enqueue(_ count: Int, on stage: Stage, token: String = "0a") async throws {
        for person in 0..<count {
            try await stage.register("p\(person)", token: "\(token)\(String(format: "%06d", person))")
            try await stage.enqueue("p\(person)", key: "k\(person)")
        }
    }

    private func allSettled(_ count: Int, on stage: Stage) async throws {
        try await eventually("all is delivered", within: .seconds(60)) {
            try await stage.texts("SELECT count(*) FROM postbell.notifications WHERE status = 'dispatched'")
                == ["\(count)"]
        }
    }

    /// Sent again only where the ledger says why: an unknown row, or a row that came late.
    private func everyRepetitionIsExplained(on stage: Stage) async throws -> Bool {
        let sent = await stage.apns.requests.compactMap { $0.headers["apns-id"] }
        let twice = Dictionary(grouping: sent) { $0 }.filter { $0.value.count > 1 }.keys
        let explained = try await stage.texts(
            "SELECT DISTINCT notification_id FROM postbell.ledger WHERE outcome = 'unknown' OR late")
        return Set(twice).isSubset(of: explained)
    }

    private func slowly(_ configuration: inout FakeAPNSConfiguration) {
        configuration.slowness = .seconds(1)
    }

    @Test func aWorkerHaltedBeyondItsLeaseIsFencedWhenItGoesOn() async throws {
        try await Stage.on(.postgres15, configure: slowly) { stage in
            try await enqueue(200, on: stage, token: "fa003a")
            let first = try stage.startWorker(Self.shortLease)
            _ = await stage.apns.requests(reaching: 200)
            first.send(SIGSTOP)
            let second = try stage.startWorker(Self.shortLease)
            try await allSettled(200, on: stage)
            let effects = "SELECT count(*) FROM postbell.events WHERE name <> 'device.registered'"
            let before = try await stage.texts(effects)
            first.send(SIGCONT)
            try await eventually("its results are late") {
                try await stage.texts("SELECT count(*) > 0 FROM postbell.ledger WHERE late") == ["true"]
            }
            #expect(try await first.stop() == 0)
            #expect(try await second.stop() == 0)
            #expect(first.errors.contains("lease was lost"))
            #expect(try await stage.texts(effects) == before)
            #expect(try await stage.texts("SELECT count(*) FROM postbell.places") == ["0"])
            #expect(try await everyRepetitionIsExplained(on: stage))
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aSecondSignalCutsOffWhatIsInFlight() async throws {
        try await Stage.on(.postgres15) { stage in
            // Silence: only the second signal can end this before the stop timeout.
            try await enqueue(20, on: stage, token: "fa000a")
            let worker = try stage.startWorker(["POSTBELL_STOP_TIMEOUT": "10m", "POSTBELL_REQUEST_TIMEOUT": "10s"])
            _ = await stage.apns.requests(reaching: 20)
            worker.send(SIGTERM)
            try await eventually("it drains") { worker.errors.contains("finishing what is in flight") }
            #expect(try await worker.stop() == 0)
            let outcomes = "SELECT DISTINCT outcome FROM postbell.ledger"
            #expect(try await stage.texts(outcomes) == ["unknown"])
            #expect(try await stage.texts("SELECT count(*) FROM postbell.queue") == ["20"])
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aStopIsHeldUpByNoProviderThatNeverAnswers() async throws {
        try await Stage.on(.postgres15) { stage in
            try await enqueue(60, on: stage, token: "fa000a")
            let worker = try stage.startWorker(
                Self.shortLease.merging(["POSTBELL_CONCURRENCY": "20", "POSTBELL_STOP_TIMEOUT": "2s"]) { _, new in new }
            )
            _ = await stage.apns.requests(reaching: 20)
            worker.send(SIGTERM)
            #expect(try await worker.end() == 0)
            let asked = await stage.apns.statistics.requests
            // What was asked is unknown, the rest went back as it was; nothing is left to a lease.
            let rows = "SELECT concat_ws(' ', outcome, count(*)) FROM postbell.ledger GROUP BY outcome"
            #expect(try await stage.texts(rows) == ["unknown \(asked)"])
            let places = "SELECT concat_ws(' ', place, count(*)) FROM postbell.places GROUP BY place"
            #expect(try await stage.texts(places) == ["queue 60"])
            #expect(try await stage.texts("SELECT count(*) FROM postbell.leases") == ["0"])
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aLaneThatIsNeverAnsweredHoldsUpNoOther() async throws {
        try await Stage.on(.postgres15) { stage in
            // Production is a lane of its own, with connections of its own, though the fake stands for both.
            try await enqueue(1000, on: stage, token: "fa000a")
            let crowd = Crowd(rows: 2000, name: "well", environment: "production")
            try await crowd.register(stage)
            let worker = try stage.startWorker(["POSTBELL_REQUEST_TIMEOUT": "10s", "POSTBELL_CONCURRENCY": "500"])
            _ = await stage.apns.requests(reaching: 500)
            try await crowd.enqueue(stage)
            try await crowd.waitUntilReached(stage)
            let silent = await stage.apns.statistics.unanswered
            #expect(silent >= 500, "the other lane is full all the time")
            let hole = "SELECT count(*) FROM postbell.ledger WHERE environment = 'sandbox' AND outcome = 'delivered'"
            #expect(try await stage.texts(hole) == ["0"])
            #expect(try await crowd.outcomesOfGood(stage) == ["delivered t 1 2000"])
            worker.send(SIGTERM)
            #expect(try await worker.stop() == 0)
        }
    }

    @Test(arguments: ["claim", "settle"])
    func aLostAnswerIsNoCrashAndNoLoss(statement: String) async throws {
        let proxy = try Proxy(to: DatabaseServer.postgres15.socketPath())
        defer { proxy.stop() }
        try await Stage.on(.postgres15) { stage in
            try await enqueue(1, on: stage)
            let worker = try stage.startWorker(through: proxy)
            try await stage.waitFor("k0", "dispatched")
            proxy.loseAnswer(of: statement)
            for person in 1...50 {
                try await stage.register("q\(person)", token: "0b\(String(format: "%06d", person))")
                try await stage.enqueue("q\(person)", key: "q\(person)")
            }
            try await allSettled(51, on: stage)
            #expect(proxy.lostAnswers == 1)
            #expect(try await stage.texts("SELECT DISTINCT outcome FROM postbell.ledger") == ["delivered"])
            #expect(await stage.apns.requests.count == 51, "neither was anything sent twice")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// Both were checked when they were handed over, and what has happened since counts all the same.
    @Test func whatIsOverBeforeAConnectionStandsIsNotSent() async throws {
        try await Stage.on(.postgres15) { stage in
            await stage.apns.play(try Scenario("apns black-hole to 10m"))
            try await stage.register("ada", token: "0a")
            try await stage.run(
                """
                SELECT postbell.enqueue('approval_requested', 'ada', key, format('{"approval_id": "%s"}',
                    gen_random_uuid()), subject => key, expires_at => now() + life)
                FROM (VALUES ('late', interval '3 s'), ('over', interval '1 h')) v(key, life)
                """)
            let worker = try stage.startWorker([
                "POSTBELL_CONNECT_TIMEOUT": "60s", "POSTBELL_REQUEST_TIMEOUT": "60s", "POSTBELL_LEASE": "2m",
                "POSTBELL_STOP_TIMEOUT": "60s",
            ])
            try await eventually("both are in hand") {
                try await stage.texts("SELECT sum(claimed) FROM postbell.in_flight") == ["2"]
            }
            try await stage.run("SELECT postbell.supersede('default', 'over')")
            try await eventually("deadline and check have run out") {
                let over = "SELECT min(expires_at) + interval '1 s' < now() FROM postbell.outbox"
                return try await stage.texts(over) == ["true"]
            }
            await stage.apns.play(Scenario())
            try await stage.waitFor("late", "expired")
            try await stage.waitFor("over", "superseded")
            #expect(await stage.apns.statistics.requests == 0)
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test(arguments: [false, true])
    func aStopIsHeldUpByNoDatabaseThatHangs(beforeTheFirstSession: Bool) async throws {
        let proxy = try Proxy(to: DatabaseServer.postgres15.socketPath())
        defer { proxy.stop() }
        try await Stage.on(.postgres15) { stage in
            if beforeTheFirstSession { proxy.freeze() }
            try await enqueue(20, on: stage, token: "fa000a")
            let worker = try stage.startWorker(
                through: proxy, Self.shortLease.merging(["POSTBELL_STOP_TIMEOUT": "2s"]) { _, new in new })
            if beforeTheFirstSession {
                try await eventually("it starts") { worker.errors.contains("waiting for the database") }
            } else {
                _ = await stage.apns.requests(reaching: 20)
                proxy.freeze()
            }
            worker.send(SIGTERM)
            // Within its stop timeout and the seconds for the last writes; `end` allows half a minute.
            #expect(try await worker.end() == 0)
            proxy.thaw()
            #expect(try await stage.audit() == [])
        }
    }

    @Test func sessionsThatAreEndedAgainAndAgainLoseNothing() async throws {
        try await Stage.on(.postgres15) { stage in
            let worker = try stage.startWorker()
            for round in 0..<5 {
                for row in 0..<40 {
                    try await stage.register("p\(round)-\(row)", token: "0c\(round)\(String(format: "%04d", row))f")
                    try await stage.enqueue("p\(round)-\(row)", key: "k\(round)-\(row)")
                }
                try await stage.run(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        + "WHERE datname = current_database() AND usename LIKE 'e2e%'")
            }
            try await allSettled(200, on: stage)
            #expect(worker.isRunning)
            #expect(try await worker.stop() == 0)
            #expect(try await everyRepetitionIsExplained(on: stage))
            #expect(try await stage.audit() == [])
        }
    }
}
