import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// How workers, lanes and routes are, as the views say it.
@Suite(.timeLimit(.minutes(5)))
struct HealthTests {
    private static func register(
        _ outbox: Outbox, _ name: String, _ lanes: LaneReport..., owner: Identifier = Worker.identifier()
    ) async throws {
        let worker = try await outbox.worker()
        _ = try await worker.query(
            WorkerStatement.registration(owner: owner, name: name, version: "1.0", lanes: lanes, hooks: []))
        await worker.connection.close()
    }

    private static func routes(_ outbox: Outbox) async throws -> [String] {
        try await outbox.texts(
            "SELECT concat_ws(' ', route, workers, state, reason) FROM postbell.route_service ORDER BY route_no")
    }

    private static func now(_ outbox: Outbox) async throws -> Timestamp {
        let microseconds = try await outbox.value("SELECT (extract(epoch FROM now()) * 1000000)::bigint")
        return Timestamp(microseconds: Int64(microseconds) ?? 0)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A route is unserved unless a live worker has it`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let nobody = ["none 0 unserved", "apns/production/app.one 0 unserved", "fcm/app.two 0 unserved"]
            #expect(try await Self.routes(outbox) == nobody)
            try await Self.register(outbox, "a", LaneReport(name: "apns/production/default", routes: [1]))
            let one = ["none 1 up", "apns/production/app.one 1 up", "fcm/app.two 0 unserved"]
            #expect(try await Self.routes(outbox) == one)
            try await Self.register(
                outbox, "b", LaneReport(name: "apns/production/default", routes: [1]),
                LaneReport(name: "fcm/default", routes: [2]))
            #expect(
                try await Self.routes(outbox) == ["none 2 up", "apns/production/app.one 2 up", "fcm/app.two 1 up"])
            try await outbox.run("UPDATE postbell.workers SET stopped_at = now() WHERE name = 'b'")
            #expect(try await Self.routes(outbox) == one)
            try await outbox.run(
                "UPDATE postbell.workers SET heartbeat_at = now() - postbell.heartbeat_limit() WHERE name = 'a'")
            #expect(try await Self.routes(outbox) == nobody)
            #expect(
                try await outbox.texts("SELECT name || ' ' || state FROM postbell.worker_health ORDER BY 1")
                    == ["a dead", "b stopped"])
            #expect(try await outbox.texts("SELECT lane FROM postbell.lane_health") == [])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A route is as well as the best of its lanes, and a pause that ran out waits for its probe`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            let now = try await Self.now(outbox)
            func lane(_ condition: LaneReport.Condition, _ reason: String, seconds: Int64) -> LaneReport {
                LaneReport(
                    name: "apns/production/default", condition: condition, reason: reason, since: now,
                    until: now + .seconds(seconds), routes: [1])
            }
            let owner = Worker.identifier()
            try await Self.register(outbox, "a", lane(.paused, "403 x", seconds: 600), owner: owner)
            #expect(try await Self.routes(outbox)[1] == "apns/production/app.one 1 paused 403 x")
            try await Self.register(outbox, "b", lane(.down, "refused", seconds: 300))
            #expect(try await Self.routes(outbox)[1] == "apns/production/app.one 2 down refused")
            #expect(
                try await outbox.texts(
                    """
                    SELECT concat_ws(' ', worker, lane, state, reason, routes, until - since)
                    FROM postbell.lane_health ORDER BY worker
                    """) == [
                        "a apns/production/default paused 403 x {1} 00:10:00",
                        "b apns/production/default down refused {1} 00:05:00",
                    ])
            try await Self.register(outbox, "a", lane(.paused, "403 x", seconds: -1), owner: owner)
            #expect(try await Self.routes(outbox)[1] == "apns/production/app.one 2 probing 403 x")
            #expect(
                try await outbox.texts("SELECT concat_ws(' ', state, reason) FROM postbell.lane_health ORDER BY worker")
                    == ["probing 403 x", "down refused"])
            try await Self.register(outbox, "c")
            #expect(try await Self.routes(outbox)[0] == "none 3 up", "a worker without lanes ends waits too")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Readers and dispatchers may look`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for role in ["postbell_reader", "postbell_dispatcher"] {
                let session = try await outbox.database.connect(role: role)
                for view in ["worker_health", "lane_health", "route_service"] {
                    #expect(await session.refusal("SELECT * FROM postbell.\(view)") == nil, "\(role) \(view)")
                }
                await session.close()
            }
            let producer = try await outbox.database.connect(role: "postbell_producer")
            #expect(await producer.refusal("SELECT * FROM postbell.route_service") == "42501")
            await producer.close()
        }
    }
}
