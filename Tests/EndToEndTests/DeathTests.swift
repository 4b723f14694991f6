import FakeProviders
import Foundation
import Support
import Testing

/// A worker may die or be told to stop at any moment; nothing is lost by it.
@Suite(.serialized) struct DeathTests {
    private func fewStreams(_ configuration: inout FakeAPNSConfiguration) {
        configuration.streams = 5
    }

    @Test func aStoppedWorkerFinishesWhatIsInFlightAndLetsGoOfTheRest() async throws {
        try await Stage.on(.postgres15, configure: fewStreams) { stage in
            for person in 0..<50 {
                try await stage.register("p\(person)", token: "0a\(String(format: "%06d", person))")
                try await stage.enqueue("p\(person)", key: "k\(person)")
            }
            let worker = try stage.startWorker()
            _ = await stage.apns.requests(reaching: 1)
            #expect(try await worker.stop() == 0)
            #expect(try await stage.texts("SELECT count(*) FROM postbell.leases") == ["0"])
            #expect(try await stage.audit() == [])
            let second = try stage.startWorker()
            try await eventually("the rest is delivered") {
                try await stage.texts(
                    "SELECT count(*) FROM postbell.notifications WHERE status = 'dispatched'") == ["50"]
            }
            #expect(try await second.stop() == 0)
            // Nothing was cut off, so nothing went out twice.
            #expect(await stage.apns.requests.count == 50)
        }
    }

    @Test func whatAKilledWorkerHadInFlightIsUnknownAndSentAgain() async throws {
        try await Stage.on(.postgres15) { stage in
            // Silence: the request arrives and is never answered.
            try await stage.register("ada", token: "fa0000")
            try await stage.enqueue("ada", key: "k1")
            let first = try stage.startWorker(["POSTBELL_LEASE": "5s", "POSTBELL_REQUEST_TIMEOUT": "2s"])
            _ = await stage.apns.requests(reaching: 1)
            first.send(SIGKILL)
            #expect(try await first.end() == -SIGKILL)
            #expect(try await stage.texts("SELECT count(*) FROM postbell.leases") == ["1"])
            try await stage.run("UPDATE postbell.devices SET token = repeat('0a', 32), token_seq = token_seq + 1")
            let second = try stage.startWorker()
            try await stage.waitFor("k1", "dispatched")
            #expect(try await stage.outcomes("k1") == ["unknown", "delivered"])
            let requests = await stage.apns.requests
            #expect(Set(requests.compactMap { $0.headers["apns-id"] }).count == 1, "both under one name")
            #expect(try await second.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aDatabaseThatGoesAwayIsWaitedOut() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            let worker = try stage.startWorker()
            try await stage.waitFor("k1", "dispatched")
            try await stage.endWorkersSessions()
            try await stage.enqueue("ada", key: "k2")
            try await stage.waitFor("k2", "dispatched")
            #expect(worker.isRunning)
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }
}
