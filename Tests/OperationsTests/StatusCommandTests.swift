import Foundation
import OutboxCore
import OutboxPostgres
import Support
import Testing

@testable import Operations

/// `postbell status`, on real servers with a real store.
@Suite(.serialized) struct StatusCommandTests {
    private func alarms(_ object: [String: Any]) -> [String] {
        (object["alarms"] as? [[String: Any]] ?? []).map { "\($0["name"] ?? "-") \($0["about"] ?? "-")" }
    }

    private func first(_ object: [String: Any], _ key: String) throws -> [String: Any] {
        try #require((object[key] as? [[String: Any]])?.first)
    }

    @Test(arguments: DatabaseServer.allCases)
    func anInstanceThatIsWellEndsWithZero(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            try await scene.device()
            try await scene.enqueue("a")
            try await scene.attempt(Outcome(.delivered, status: 200))
            try await scene.enqueue("b")
            try await scene.claim()
            try await scene.enqueue("c")
            try await scene.enqueue("d", more: "not_before => now() + interval '1 hour'")
            let status = try scene.json("status")
            #expect(status["well"] as? Bool == true)
            let queue = try first(status, "queue")
            #expect(queue["route"] as? String == "apns/production/app.one")
            #expect(queue["urgency"] as? String == "urgent")
            #expect(queue["waiting"] as? Int == 2)
            #expect(queue["due"] as? Int == 1)
            #expect((queue["oldest_due_at"] as? String)?.hasSuffix("Z") == true)
            let flight = try first(status, "in_flight")
            #expect(flight["leases"] as? Int == 1 && flight["rows"] as? Int == 1)
            let worker = try first(status, "workers")
            #expect(worker["name"] as? String == "tester/1" && worker["state"] as? String == "alive")
            #expect(worker["leased"] as? Int == 1)
            #expect(try first(status, "lanes")["state"] as? String == "up")
            let recent = try #require(status["last_minute"] as? [String: Any])
            #expect(recent["outcomes"] as? [String: Int] == ["delivered": 1])
            #expect((recent["accepted_after_us"] as? [String: Int])?["median"] ?? 0 > 0)
            let result = try scene.postbell("status")
            #expect(result.status == 0)
            #expect(result.output.hasPrefix("all is well  "))
            #expect(result.output.contains("in flight: 1 row in 1 lease"))
            #expect(result.output.contains("last minute: 1 delivered; from planned to accepted: half within "))
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func workThatNobodyServesIsAnAlarm(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            try await scene.device(route: 2)
            #expect(try scene.postbell("status").status == 0, "a route without work is no alarm")
            try await scene.enqueue("a")
            #expect(try alarms(scene.json("status", status: 1)) == ["unserved fcm/app.two"])
            let result = try scene.postbell("status")
            #expect(result.status == 1)
            #expect(result.output.contains("! no live worker serves fcm/app.two, where 1 row waits"))
            try await scene.heartbeat(routes: [1, 2])
            #expect(try scene.postbell("status").status == 0)
            try await scene.run("UPDATE postbell.workers SET heartbeat_at = now() - interval '1 min'")
            #expect(try alarms(scene.json("status", status: 1)) == ["unserved fcm/app.two"])
            #expect(try scene.postbell("status").output.contains("no worker is alive\nWORKER"))
            try await scene.store.unregister()
            #expect(try scene.postbell("status").output.contains("no worker is alive\n1 stopped within the last day"))
        }
    }

    @Test func lanesLeasesAndRowsInTroubleAreAlarms() async throws {
        try await LookingScene.on(.postgres15) { scene in
            try await scene.heartbeat(
                .paused, reason: "403 InvalidProviderToken", since: .seconds(-60), until: .seconds(600))
            #expect(try alarms(scene.json("status", status: 1)) == ["lane_paused apns/production/default"])
            try await scene.heartbeat(.down, reason: "refused", since: .seconds(-60), until: .seconds(1))
            #expect(try alarms(scene.json("status", status: 1)) == ["lane_down apns/production/default"])
            try await scene.heartbeat(hook: "stale: it raised an error")
            let report = try scene.json("status", status: 1)
            #expect(alarms(report) == ["hook_failing note"])
            let hook = try #require((report["hooks"] as? [[String: Any]])?.first)
            #expect(hook["reason"] as? String == "stale: it raised an error" && hook["until"] is String)
            try await scene.heartbeat()

            try await scene.device()
            try await scene.enqueue("a")
            try await scene.claim()
            try await scene.run("UPDATE postbell.leases SET until = now() - interval '20 s'")
            #expect(try alarms(scene.json("status", status: 1)) == ["lapsed apns/production/app.one"])
            try await scene.recover()
            #expect(try alarms(scene.json("status", status: 1)) == ["crashed apns/production/app.one"])
            try await scene.run(
                "UPDATE postbell.queue SET crashes = 0, due_at = now() - interval '301 s'")
            #expect(try alarms(scene.json("status", status: 1)) == ["overdue apns/production/app.one"])
            let patient = try scene.environment().merging(["POSTBELL_STUCK_AFTER": "10m"]) { first, _ in first }
            #expect(try Program.run(["status"], environment: patient).status == 0)
        }
    }

    @Test func rowsAreCountedPerTenantWhereOneIsNamed() async throws {
        try await LookingScene.on(.postgres15) { scene in
            try await scene.device()
            try await scene.enqueue("a")
            #expect((try scene.json("status", "--tenant", "other")["queue"] as? [Any])?.isEmpty == true)
            #expect((try scene.json("status", "--tenant", "default")["queue"] as? [Any])?.count == 1)
        }
    }

    @Test func aWatchedStatusComesAgainAndAgain() async throws {
        try await LookingScene.on(.postgres15) { scene in
            let (process, output) = (Process(), Pipe())
            process.executableURL = Program.executable
            process.arguments = ["status", "--watch", "--json"]
            process.environment = try scene.environment()
            process.standardOutput = output
            try process.run()
            defer { if process.isRunning { process.terminate() } }
            var read = Data()
            while read.count(where: { $0 == UInt8(ascii: "\n") }) < 2 {
                let more = output.fileHandleForReading.availableData
                try #require(!more.isEmpty)
                read += more
            }
            for line in read.split(separator: UInt8(ascii: "\n")).prefix(2) {
                #expect(try JSONSerialization.jsonObject(with: line) is [String: Any])
            }
            // Whoever read it goes away: it ends by itself.
            try output.fileHandleForReading.close()
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 0)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func onlyReadersMayLook(server: DatabaseServer) async throws {
        try await LookingScene.on(server) { scene in
            let refused = try scene.postbell("status", as: LookingScene.producer)
            #expect(refused.status == 6)
            #expect(refused.lines.count == 1)
            #expect(refused.errors.contains("; use a login that is granted postbell_reader"))
        }
    }
}
