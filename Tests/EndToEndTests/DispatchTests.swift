import FakeProviders
import Foundation
import Support
import Testing

/// The main job, end to end: a row becomes a push, and the ledger shows it.
@Suite(.serialized) struct DispatchTests {
    @Test(arguments: DatabaseServer.allCases)
    func aRowBecomesAPushAndTheLedgerShowsIt(server: DatabaseServer) async throws {
        try await Stage.on(server) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            let worker = try stage.startWorker()
            try await stage.waitFor("k1", "dispatched")
            #expect(try await stage.outcomes("k1") == ["delivered"])
            let request = try #require(await stage.apns.requests.first)
            #expect(request.path == "/3/device/0a0b0c0d" + String(repeating: "0", count: 56))
            #expect(request.headers["apns-topic"] == Stage.topic)
            #expect(request.headers["apns-push-type"] == "alert")
            let identifier = try await stage.texts("SELECT id FROM postbell.outbox")
            #expect(request.headers["apns-id"] == identifier.first)
            #expect(request.body.contains(#""title":"Approval needed""#))
            #expect(request.body.contains(#""body":"Allow mail.send?""#))
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func behindAProxyThatPoolsTransactionsAWorkerPollsAndPreparesNothingByName() async throws {
        try await Stage.on(.postgres15) { stage in
            let proxy = try DatabaseForwarder(
                to: stage.database.server.connectionString(), poolingTransactions: true)
            proxy.open()
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            let url = "\(stage.databaseURL) host=127.0.0.1 port=\(proxy.port) sslmode=disable gssencmode=disable"
            let worker = try stage.startWorker(["DATABASE_URL": url, "POSTBELL_WAKE": "poll"])
            try await stage.waitFor("k1", "dispatched")
            // Nobody tells it of this one.
            try await stage.enqueue("ada", key: "k2")
            try await stage.waitFor("k2", "dispatched")
            let sessions = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE usename LIKE 'e2e%'"
            #expect(try await stage.texts(sessions).contains("postbell listen") == false)
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
            proxy.stop()
        }
    }

    @Test func aDeadTokenLeavesTheRegistry() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "fa410a")
            try await stage.enqueue("ada", key: "k1")
            let worker = try stage.startWorker()
            try await stage.waitFor("k1", "dispatched")
            #expect(try await stage.outcomes("k1") == ["unregistered"])
            try await eventually("the device loses its token") {
                try await stage.texts("SELECT token FROM postbell.devices") == [""]
            }
            #expect(try await stage.texts("SELECT disabled_reason FROM postbell.devices") == ["token_invalid"])
            let events = "SELECT name FROM postbell.events WHERE name = 'device.push_token_invalidated'"
            #expect(try await stage.texts(events).count == 1)
            #expect(try await worker.stop() == 0)
        }
    }

    @Test func aPushIsTriedAgainAfterA503() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "fa5031")
            try await stage.enqueue("ada", key: "k1")
            let worker = try stage.startWorker()
            try await stage.waitFor("k1", "dispatched")
            #expect(try await stage.outcomes("k1") == ["retry", "delivered"])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aRetryInAMiddlePageHoldsUpNoOtherPage() async throws {
        try await Stage.on(.postgres15) { stage in
            for number in 1...10 {
                let token = number == 5 ? "fa5031" : "0a0a" + String(format: "%04d", number)
                try await stage.register("ada", token: token, device: "phone-\(number)")
            }
            try await stage.enqueue("ada", key: "k1")
            let worker = try stage.startWorker(["POSTBELL_TARGETS_PER_CLAIM": "3"])
            try await stage.waitFor("k1", "dispatched")
            let outcomes = try await stage.outcomes("k1")
            #expect(outcomes.filter { $0 == "delivered" }.count == 10 && outcomes.count == 11, "\(outcomes)")
            let paths = await stage.apns.requests.map(\.path)
            #expect(Set(paths.prefix(10)).count == 10, "all pages go out before what is tried again")
            #expect(paths.dropFirst(10).map { $0.contains("fa5031") } == [true])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aSupersededRowIsNotSent() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1", subject: "approval:1")
            try await stage.run("SELECT postbell.supersede('default', 'approval:1')")
            try await stage.enqueue("ada", key: "k2", subject: "approval:1")
            let worker = try stage.startWorker()
            try await stage.waitFor("k1", "superseded")
            try await stage.waitFor("k2", "dispatched")
            #expect(await stage.apns.requests.count == 1)
            #expect(try await worker.stop() == 0)
        }
    }

    @Test func aNotificationWakesAnIdleWorkerLongBeforeItsPoll() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            // With a poll of a minute only the notification can bring the row within the wait of this test.
            let worker = try stage.startWorker(["POSTBELL_POLL": "60s"])
            try await stage.enqueue("ada", key: "k1")
            try await stage.waitFor("k1", "dispatched")
            try await eventually("the worker sleeps") {
                try await stage.texts(
                    """
                    SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
                        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                    """) == ["0"]
            }
            try await stage.enqueue("ada", key: "k2")
            try await stage.waitFor("k2", "dispatched")
            #expect(try await worker.stop() == 0)
        }
    }

    @Test func aWrongKeyPausesTheLaneAndWipesNobody() async throws {
        try await Stage.on(.postgres15, keyMatches: false) { stage in
            for person in 0..<20 { try await stage.register("p\(person)", token: "0a0b\(person)f") }
            for person in 0..<20 { try await stage.enqueue("p\(person)", key: "k\(person)") }
            let worker = try stage.startWorker()
            try await eventually("the lane pauses") { worker.errors.contains("lane is paused") }
            try await eventually("every row waits again") {
                try await stage.texts("SELECT count(*) FROM postbell.queue") == ["20"]
            }
            try await eventually("the registry shows the pause") {
                try await stage.texts("SELECT concat_ws(' ', route, state, reason) FROM postbell.route_service")
                    .contains("apns/sandbox/\(Stage.topic) paused 403 InvalidProviderToken")
            }
            let tokens = "SELECT count(*) FROM postbell.devices WHERE token IS NOT NULL"
            #expect(try await stage.texts(tokens) == ["20"])
            #expect(try await stage.status("k0") == "pending")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func theLogHoldsNeitherTokenNorPayload() async throws {
        try await Stage.on(.postgres15) { stage in
            for token in ["fa410c0ffee", "fa5001c0ffee", "fa413c0ffee", "00c0ffee"] {
                try await stage.register(token, token: token)
                try await stage.enqueue(token, key: "k-\(token)", tool: "secret.tool")
            }
            let worker = try stage.startWorker()
            try await eventually("all is settled") {
                try await stage.texts("SELECT count(*) FROM postbell.notifications WHERE status = 'pending'") == ["0"]
            }
            #expect(try await worker.stop() == 0)
            let log = worker.errors
            #expect(log.contains("settled"))
            #expect(!log.contains("c0ffee"))
            #expect(!log.contains("secret.tool"))
            #expect(!log.contains("bearer"))
        }
    }
}
