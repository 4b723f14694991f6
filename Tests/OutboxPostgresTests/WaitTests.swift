import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Notifications that wait for a device: how the wait ends, and who joins what waits. Whatever happens, a notification
/// never comes back from an end.
@Suite(.timeLimit(.minutes(5)))
struct WaitTests {
    /// What is done to a notification without a device, and what is left of it when its wait has ended.
    static let waits: [(made: String, left: String)] = [
        ("", "a dispatched no_device"),
        ("UPDATE postbell.queue SET due_at = now() + interval '1 h'", "a queue 0"),
        (device(), "a queue 1"),
        ("\(device()); UPDATE postbell.devices SET muted_kinds = '{note}'", "a queue 1"),
        ("\(device()); UPDATE postbell.devices SET token = NULL", "a dispatched no_device"),
        ("\(device()); UPDATE postbell.devices SET status = 'pending'", "a dispatched no_device"),
        (device(of: "berta"), "a dispatched no_device"),
        (device(app: "app.three"), "a dispatched no_device"),
        (
            "\(device()); UPDATE postbell.outbox SET except_device_no = (SELECT device_no FROM postbell.devices)",
            "a dispatched no_device"
        ),
        ("\(device()); UPDATE postbell.outbox SET device_no = -1", "a dispatched no_device"),
        (
            "\(device()); UPDATE postbell.outbox SET device_no = (SELECT device_no FROM postbell.devices)",
            "a queue 1"
        ),
        ("SELECT postbell.cancel(id) FROM postbell.outbox", "a cancelled cancelled"),
        ("\(device()); SELECT postbell.cancel(id) FROM postbell.outbox", "a cancelled cancelled"),
        ("\(device()); SELECT postbell.supersede('default', 's')", "a superseded superseded"),
        ("\(device()); SELECT postbell.erase('default', 't')", "a cancelled erased"),
        ("\(device()); SELECT postbell.sync('anna', seen => '{s}')", "a superseded seen"),
        ("\(device()); UPDATE postbell.outbox SET expires_at = now()", "a expired expired"),
    ]

    /// A device that the notification has not seen: put there without a registration, which would join.
    private static func device(of principal: String = "anna", app: String = "app.one") -> String {
        """
        INSERT INTO postbell.devices (id, principal_id, client_device_id, provider, environment, app, route_no, token,
            token_seq, token_registered_at)
        VALUES (gen_random_uuid(), '\(principal)', 'phone', 'apns', 'production', '\(app)', 1, 'aabb', 1, now())
        """
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A wait ends with the routes that there are, or with an end`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.enqueue("a", more: "subject => 's', thread => 't'")
            for (made, left) in Self.waits {
                try await outbox.run("BEGIN; \(made)")
                try await outbox.run("SET LOCAL ROLE postbell_dispatcher")
                let command = ResolveUnroutedStatement.command(limit: 100)
                for _ in 1...2 { _ = try await outbox.admin.query(command.statement, command.parameters) }
                try await outbox.run("RESET ROLE")
                #expect(try await Self.left(outbox) == [left], "\(made)")
                try await outbox.run("ROLLBACK")
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A wait that a registration holds is not ended under it`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            try await registrar.execute("BEGIN; \(Self.registration())")
            #expect(try await worker.resolve() == 0, "skipped, and not waited for")
            try await registrar.execute("COMMIT")
            #expect(try await Self.left(outbox) == ["a queue 1"])
            await registrar.close()
        }
    }

    // MARK: Who joins

    @Test(arguments: DatabaseServer.allCases)
    func `A device that was there before is a target without a history`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.run(Self.registration())
            try await outbox.enqueue("a")
            #expect(try await Self.left(outbox) == ["a queue 1"])
            #expect(try await outbox.value("SELECT prior FROM postbell.queue") == "f")
        }
    }

    /// Documented: the audience is what the insert could see. The wait finds such a device when it ends.
    @Test(arguments: DatabaseServer.allCases)
    func `A registration and an enqueue that overlap miss one another`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            try await registrar.execute("BEGIN; \(Self.registration())")
            try await outbox.enqueue("a")
            try await registrar.execute("COMMIT")
            let producer = try await outbox.database.connect(role: "postbell_producer")
            try await producer.execute("BEGIN; SELECT postbell.enqueue('note', 'anna', 'b')")
            try await registrar.execute(Self.registration("tablet", route: 2))
            try await producer.execute("COMMIT")
            #expect(try await Self.left(outbox) == ["a queue 1", "a queue 2", "b queue 1"])
            let worker = try await outbox.worker()
            #expect(try await worker.resolve() == 0, "the second registration has ended the wait of the first row")
            await producer.close()
            await registrar.close()
        }
    }

    /// What has been sent stays as it is, whoever comes later; the last row is joined with its history.
    @Test(arguments: DatabaseServer.allCases)
    func `Nothing that has ended opens again for a late device`(server: DatabaseServer) async throws {
        try await Self.on(server) { outbox in
            try await outbox.run(Self.registration())
            try await outbox.enqueue("delivered", "leased", "retried")
            for (key, more) in [("superseded", "subject => 's'"), ("erased", "thread => 't'"), ("cancelled", "")] {
                try await outbox.enqueue(key, more: more)
            }
            let worker = try await outbox.worker()
            _ = try await worker.settle(worker.claimed(1).flush(1))
            let leased = try await worker.claimed(1)
            let retried = try await worker.claimed(1)
            var back = retried.flush(1, outcome: Outcome(.retry, status: 503), final: false, retryAfter: .zero)
            back.returns = [.back(1)]
            _ = try await worker.settle(back)
            try await outbox.run(
                """
                SELECT postbell.supersede('default', 's'), postbell.erase('default', 't');
                SELECT postbell.cancel(id) FROM postbell.outbox WHERE dedupe_key = 'cancelled'
                """)
            _ = try await worker.sweep()
            try await outbox.enqueue("nobody", to: "berta")
            _ = try await worker.resolve()
            let before = try await Self.left(outbox)
            #expect(
                before == [
                    "cancelled cancelled cancelled", "delivered dispatched", "erased cancelled erased", "leased lease",
                    "nobody dispatched no_device", "retried queue 1", "superseded superseded superseded",
                ])
            try await outbox.run(Self.registration("tablet", route: 2))
            try await outbox.run(Self.registration("watch", route: 1))
            try await outbox.run(Self.registration(of: "berta"))
            #expect(try await Self.left(outbox).filter { $0 != "retried queue 2" } == before)
            #expect(
                try await outbox.texts("SELECT prior FROM postbell.queue WHERE route_no = 2") == ["t"],
                "only what still waits is joined")
            // The watch is a target of the row that waits, the phone is one again, and the tablet has a row of its own.
            let again = try await worker.claimed()
            #expect(again.devices == [[1, 3]])
            let tablet = try await worker.claimed(route: 2)
            #expect(tablet.devices == [[2]])
            for batch in [leased, again, tablet] { _ = try await worker.settle(batch.flush(1)) }
            #expect(try await Self.left(outbox).filter { $0.hasSuffix("dispatched") }.count == 3)
        }
    }

    private static func registration(
        _ client: String = "phone", of principal: String = "anna", route: RouteNumber = 1
    ) -> String {
        let place = route == 1 ? "'apns', 'app.one'" : "'fcm', 'app.two'"
        let environment = route == 1 ? ", 'production'" : ""
        return "SELECT postbell.device_register('\(principal)', '\(client)', \(place), "
            + "md5('\(principal) \(client)')\(environment))"
    }

    /// A kind for two apps that waits for nobody.
    private static func on(_ server: DatabaseServer, _ body: (Outbox) async throws -> Void) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SELECT postbell.define_kind('note', 'template', '{}', '{"title": "x"}', ends_when_seen => true,
                    wait_for_device => '0', apps => '{app.one,app.two}')
                """)
            try await body(outbox)
        }
    }

    /// Each notification: where it is, with the route it waits for, or how it ended.
    private static func left(_ outbox: Outbox) async throws -> [String] {
        try await outbox.texts(
            """
            SELECT n.dedupe_key || ' ' || CASE WHEN n.status = 'pending' THEN concat_ws(' ', n.place, q.route_no)
                ELSE concat_ws(' ', n.status, n.reason) END
            FROM postbell.notifications n LEFT JOIN postbell.queue q ON q.notification_id = n.id AND n.place = 'queue'
            ORDER BY 1
            """)
    }
}
