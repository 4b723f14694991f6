import FakeProviders
import Foundation
import Support
import Testing

/// A worker may be told to stop at any moment, more than once, and whatever it waits for.
@Suite(.serialized) struct StopTests {
    @Test func aWorkerThatHasNoSessionYetEndsWhenItIsTold() async throws {
        try await Stage.on(.postgres15) { stage in
            // Connections are taken and never answered.
            let silent = try DatabaseForwarder(to: stage.database.server.connectionString())
            silent.listenOnly()
            defer { silent.stop() }
            let worker = try stage.startWorker([
                "DATABASE_URL": "host=127.0.0.1 port=\(silent.port) dbname=none user=none"
            ])
            try await eventually("the worker connects") { silent.hasWaitingClient }
            #expect(try await worker.stop() == 0)
            #expect(!worker.errors.contains("waiting for the database"), "it did not wait for the attempt to fail")
        }
    }

    @Test(arguments: [1, 2]) func aWorkerWhoseDatabaseIsAwayEndsWhenItIsTold(times: Int) async throws {
        try await Stage.on(.postgres15) { stage in
            let database = try DatabaseForwarder(to: stage.database.server.connectionString())
            database.open()
            // Answered late once: after the database has gone away.
            try await stage.register("ada", token: "fa0031")
            try await stage.enqueue("ada", key: "k1")
            let first = try stage.startWorker([
                "DATABASE_URL": "host=127.0.0.1 port=\(database.port) \(stage.databaseName)",
                "POSTBELL_LEASE": "5s", "POSTBELL_REQUEST_TIMEOUT": "1s", "POSTBELL_STOP_TIMEOUT": "1s",
            ])
            _ = await stage.apns.requests(reaching: 1)
            database.stop()
            try await stage.endWorkersSessions()
            first.send(SIGTERM)
            if times == 2 {
                try await eventually("it stops") { first.errors.contains("stopping: ") }
                first.send(SIGTERM)
            }
            #expect(try await first.end() == 0)
            #expect(try await stage.texts("SELECT count(*) FROM postbell.leases") == ["1"])
            let second = try stage.startWorker()
            try await stage.waitFor("k1", "dispatched")
            #expect(try await stage.outcomes("k1") == ["unknown", "delivered"])
            #expect(try await second.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test(arguments: ["draining", "aborting", "drained", "ended"])
    func oneSignalMoreIsHarmlessAtEveryStepOfAStop(step: String) async throws {
        try await Stage.on(.postgres15) { stage in
            // Silence: what is in flight ends by being aborted.
            try await stage.register("ada", token: step == "aborting" ? "fa0001" : "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            let worker = try stage.startWorker(["TEST_CRASH_AT": "\(step):1:TERM"])
            _ = await stage.apns.requests(reaching: 1)
            worker.send(SIGTERM)
            if step == "aborting" {
                try await eventually("it stops") { worker.errors.contains("stopping: ") }
                worker.send(SIGTERM)
            }
            #expect(try await worker.end() == 0)
            #expect(worker.errors.contains("crash point \(step): "))
            #expect(try await stage.texts("SELECT count(*) FROM postbell.leases") == ["0"])
            #expect(try await stage.audit() == [])
        }
    }
}
