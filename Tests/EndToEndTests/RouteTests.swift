import FakeProviders
import Foundation
import Support
import Testing

/// Who serves which route: workers of different credentials side by side, and routes of nobody.
@Suite(.serialized) struct RouteTests {
    private static let other = "com.example.other"
    private static let nobody = "com.example.nobody"
    private static let new = "com.example.new"
    private static let otherKeyID = "OTHER12345"
    private static let otherTeamID = "TEAM987654"

    /// A stage whose fake knows a second key, of another team, and what a worker needs to use that one.
    private static func onTwoApps(
        _ server: DatabaseServer, _ body: (Stage, [String: String]) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: "other.p8").path
        try IdentityFiles.makeProviderKey(at: file)
        let key = try IdentityFiles.providerKey(at: file, keyID: otherKeyID, teamID: otherTeamID)
        let environment = [
            "APNS_KEY_FILE": file, "APNS_KEY_ID": otherKeyID, "APNS_TEAM_ID": otherTeamID, "APNS_TOPIC": other,
        ]
        try await Stage.on(server) {
            $0.keys.append(key)
            $0.topics.formUnion([other, new])
        } _: { stage in
            try await body(stage, environment)
        }
    }

    /// Registers people with a device of each app, and enqueues `rows` for each, the apps interleaved.
    private static func fill(_ stage: Stage, rows: Int, apps: [String], prefix: String = "k") async throws {
        for app in apps {
            try await stage.run(
                """
                SELECT postbell.device_register('\(app)-' || n, 'phone', 'apns', '\(app)', md5('\(app)' || n)
                    || md5(n::text), environment => CASE WHEN n % 2 = 0 THEN 'sandbox' ELSE 'production' END)
                FROM generate_series(1, 10) n
                """)
        }
        let list = apps.map { "'\($0)'" }.joined(separator: ", ")
        try await stage.run(
            """
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
            SELECT app || '-' || (1 + n % 10), 'approval_requested', '\(prefix)-' || app || '-' || n,
                jsonb_build_object('approval_id', gen_random_uuid())::text
            FROM generate_series(1, \(rows)) n, unnest(ARRAY[\(list)]) app
            ORDER BY n, app
            """)
    }

    private static func pending(_ stage: Stage) async throws -> String? {
        try await stage.texts("SELECT count(*) FROM postbell.places").first
    }

    @Test(arguments: DatabaseServer.allCases)
    func twoWorkersOfDifferentAppsNeverClaimEachOthersRows(server: DatabaseServer) async throws {
        try await Self.onTwoApps(server) { stage, otherKey in
            let first = try stage.startWorker()
            let second = try stage.startWorker(otherKey)
            try await Self.fill(stage, rows: 400, apps: [Stage.topic, Self.other])
            try await eventually("all is settled") { try await Self.pending(stage) == "0" }
            let served = try await stage.texts(
                "SELECT worker || ' ' || topic FROM postbell.ledger GROUP BY worker, topic ORDER BY 1")
            #expect(served.count == 2 && Set(served.map { $0.split(separator: " ")[0] }).count == 2, "\(served)")
            #expect(
                try await stage.texts("SELECT DISTINCT outcome || ' ' || final FROM postbell.ledger")
                    == ["delivered true"])
            let requests = await stage.apns.requests
            #expect(requests.count == 800)
            let pairs = Set(requests.map { "\($0.headers["apns-topic"] ?? "") \($0.keyID ?? "")" })
            #expect(pairs == ["\(Stage.topic) \(Stage.keyID)", "\(Self.other) \(Self.otherKeyID)"])
            #expect(try await first.stop() == 0)
            #expect(try await second.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func aDeadWorkersRowsAreRecoveredByAnyAndSentByItsOwnKindAlone() async throws {
        try await Self.onTwoApps(.postgres15) { stage, otherKey in
            let first = try stage.startWorker()
            let doomed = try stage.startWorker(otherKey.merging(["POSTBELL_LEASE": "17s"]) { _, new in new })
            try await stage.run(
                """
                SELECT postbell.device_register('silent', 'phone', 'apns', '\(Self.other)',
                    'fa000a' || repeat('0', 58), environment => 'sandbox')
                """)
            try await stage.enqueue("silent", key: "held")
            try await eventually("the row is in flight") {
                await stage.apns.requests.contains { $0.path.contains("fa000a") }
            }
            doomed.send(SIGKILL)
            _ = try await doomed.end()
            // The lease lapses at once, as if its time had passed.
            try await stage.run("UPDATE postbell.leases SET until = now() - interval '1 s'")
            try await eventually("somebody else recovered it") {
                try await stage.texts("SELECT place FROM postbell.places") == ["queue"]
            }
            #expect(try await stage.outcomes("held") == ["unknown"])
            try await Self.fill(stage, rows: 20, apps: [Stage.topic])
            try await eventually("the other worker goes on") { try await Self.pending(stage) == "1" }
            #expect(await stage.apns.requests.filter { $0.path.contains("fa000a") }.count == 1)
            #expect(try await first.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func aRouteOfNobodyIsNamedByTheWatchAndItsRowsEndAtTheirDeadline(server: DatabaseServer) async throws {
        try await Self.onTwoApps(server) { stage, _ in
            try await Self.fill(stage, rows: 3, apps: [Self.nobody])
            // As if they had been enqueued an hour ago, and one of them for less than that.
            try await stage.run(
                """
                UPDATE postbell.queue SET due_at = due_at - interval '1 h';
                UPDATE postbell.outbox SET expires_at = now() - interval '1 s'
                WHERE dedupe_key = 'k-\(Self.nobody)-1'
                """)
            let worker = try stage.startWorker(["POSTBELL_STUCK_AFTER": "1m"])
            try await eventually("the route is named") {
                worker.errors.contains("work waits on a route that no worker serves")
            }
            try await eventually("the rows are named") {
                worker.errors.components(separatedBy: "notification has been due for long").count == 3
            }
            let lines = worker.errors.split(separator: "\n")
            let identifiers = try await stage.texts("SELECT id FROM postbell.outbox WHERE expires_at > now()")
            #expect(identifiers.count == 2)
            for identifier in identifiers {
                let named = lines.filter { $0.contains("due for long") && $0.contains(identifier) }
                #expect(named.count == 1 && named[0].contains("app=\(Self.nobody)"), "\(named)")
                #expect(named.allSatisfy { $0.contains("kind=approval_requested") })
            }
            #expect(lines.contains { $0.contains("no worker serves") && $0.contains("app=\(Self.nobody)") })
            try await stage.waitFor("k-\(Self.nobody)-1", "expired")
            #expect(try await stage.status("k-\(Self.nobody)-2") == "pending")
            #expect(await stage.apns.requests.isEmpty)
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func anAppThatAppearsWhileWorkersRunIsServedWithoutARestart() async throws {
        try await Self.onTwoApps(.postgres15) { stage, _ in
            let worker = try stage.startWorker(["APNS_TOPIC": "\(Stage.topic),\(Self.new)"])
            try await eventually("it runs") { worker.errors.contains("dispatching") }
            try await Self.fill(stage, rows: 2, apps: [Self.new])
            try await eventually("the new app is served") { try await Self.pending(stage) == "0" }
            let topics = Set(await stage.apns.requests.map { $0.headers["apns-topic"] ?? "" })
            #expect(topics == [Self.new])
            #expect(try await worker.stop() == 0)
        }
    }
}
