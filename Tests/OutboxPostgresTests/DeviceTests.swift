import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The registry of devices: registration, and what sending does to a device.
@Suite(.timeLimit(.minutes(5)))
struct DeviceTests {
    private static let registered = "SELECT concat_ws(' ', token_seq, token IS NOT NULL, status) FROM postbell.devices"

    // MARK: Effects

    /// M5: the token that was sent and its registration must still be the stored ones; events are written once.
    @Test(arguments: DatabaseServer.allCases)
    func `A dead token is cleared once, with one event`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            try await worker.note(.unregistered, of: batch)
            for _ in 1...2 { #expect(try await worker.apply(batch.effect(.tokenInvalid)) == []) }
            #expect(try await outbox.texts(Self.registered) == ["1 f disabled"])
            #expect(
                try await outbox.texts("SELECT name FROM postbell.events ORDER BY id")
                    == ["device.registered", "device.push_token_invalidated"])
            #expect(
                try await outbox.value(
                    "SELECT (detail ->> 'fingerprint') ~ '^[0-9a-z]{6}$' FROM postbell.events ORDER BY id DESC LIMIT 1")
                    == "t")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A token that was registered since lives on`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            try await worker.note(.unregistered, of: batch)
            // The same token, registered again: the provider's answer speaks of the time before.
            try await outbox.device()
            #expect(try await worker.apply(batch.effect(.tokenInvalid)) == [])
            #expect(try await outbox.texts(Self.registered) == ["1 t active"])
            // With the provider's own timestamp behind the registration it is dead.
            #expect(try await worker.apply(batch.effect(.tokenInvalid, asOf: batch.claimedAt + .seconds(60))) == [])
            #expect(try await outbox.texts(Self.registered) == ["1 f disabled"])
            // A new token is another one, whatever the timestamp says.
            try await outbox.run(
                "SELECT postbell.device_register('anna', 'phone', 'apns', 'app.one', repeat('ab', 16), 'production')")
            #expect(try await worker.apply(batch.effect(.tokenInvalid, asOf: batch.claimedAt + .seconds(60))) == [])
            #expect(try await outbox.texts(Self.registered) == ["2 t active"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `An effect waits for nobody and is tried again`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            try await worker.note(.unregistered, of: batch)
            try await outbox.run("BEGIN; UPDATE postbell.devices SET name = 'x'")
            #expect(try await worker.apply(batch.effect(.tokenInvalid)) == [0])
            try await outbox.run("COMMIT")
            #expect(try await worker.apply(batch.effect(.tokenInvalid)) == [])
            #expect(try await outbox.texts(Self.registered) == ["1 f disabled"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Success is noted when there were failures, else once a day`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(1)
            try await worker.note(.delivered, of: batch)
            _ = try await worker.apply(batch.effect(.succeeded))
            let noted = "SELECT failure_count || ' ' || (last_success_at IS NOT NULL) FROM postbell.devices"
            #expect(try await outbox.value(noted) == "0 true")
            #expect(try await worker.claimed(1).targets.map(\.notesSuccess) == [false])
            _ = try await worker.apply(batch.effect(.failed))
            #expect(try await outbox.value(noted) == "1 true")
            #expect(try await worker.claimed(1).targets.map(\.notesSuccess) == [true])
            _ = try await worker.apply(batch.effect(.succeeded))
            #expect(try await outbox.value(noted) == "0 true")
        }
    }

    /// Clearing without proof is for those who ask for it, and the fences are those of a dead token.
    @Test(arguments: DatabaseServer.allCases)
    func `Failures in a row clear a token where somebody wants that`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            try await worker.note(.retry, .delivered, of: batch)
            let failures = "SELECT failure_count || ' ' || status FROM postbell.devices"
            for count in 1...5 {
                _ = try await worker.apply(batch.effect(.failed))
                #expect(try await outbox.value(failures) == "\(count) active", "never by itself")
            }
            _ = try await worker.apply(batch.effect(.succeeded))
            for count in 1...2 {
                _ = try await worker.apply(batch.effect(.failed), maxFailures: 3)
                #expect(try await outbox.value(failures) == "\(count) active")
            }
            // The same token, registered again, is not the one that failed, as long as the answer is older.
            try await outbox.device()
            _ = try await worker.apply(batch.effect(.failed), maxFailures: 3)
            #expect(try await outbox.value(failures) == "2 active")
            for _ in 1...2 {
                _ = try await worker.apply(batch.effect(.failed, asOf: batch.claimedAt + .seconds(60)), maxFailures: 3)
                #expect(try await outbox.value(failures) == "3 disabled")
            }
            #expect(try await outbox.texts(Self.registered) == ["1 f disabled"])
            #expect(try await outbox.value("SELECT disabled_reason FROM postbell.devices") == "repeated_failures")
            #expect(
                try await outbox.texts(
                    "SELECT detail ->> 'reason' FROM postbell.events WHERE name = 'device.push_token_invalidated'")
                    == ["repeated_failures"])
            // Registered anew it begins anew.
            try await outbox.run(
                "SELECT postbell.device_register('anna', 'phone', 'apns', 'app.one', repeat('ab', 16), 'production')")
            #expect(try await outbox.value(failures) == "0 active")
        }
    }

    // MARK: Registration

    @Test(arguments: DatabaseServer.allCases)
    func `Registration is idempotent and answers no token`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let call =
                "SELECT r::text FROM postbell.device_register('anna', 'phone', 'apns', 'app.one', "
                + "'AABBCCDDEEFF0011', 'sandbox') r"
            let first = try await outbox.value(call)
            #expect(try await outbox.value(call) == first)
            #expect(!first.lowercased().contains("aabbcc"))
            #expect(
                try await outbox.value("SELECT token || ' ' || token_seq FROM postbell.devices") == "aabbccddeeff0011 1"
            )
            #expect(try await outbox.value("SELECT count(*) FROM postbell.events") == "1")
        }
    }

    /// A live token belongs to one device in the whole schema; nobody can tell from the answer who had it.
    @Test(arguments: DatabaseServer.allCases)
    func `A token that turns up elsewhere moves, also between tenants`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            func register(_ tenant: String, _ principal: String) async throws {
                try await outbox.run(
                    """
                    SET postbell.tenant_id = '\(tenant)';
                    SELECT postbell.device_register('\(principal)', 'phone', 'fcm', 'app.two', 'one-token')
                    """)
            }
            try await register("default", "anna")
            try await register("other", "berta")
            let owners = "SELECT tenant_id || ' ' || principal_id FROM postbell.devices WHERE token IS NOT NULL"
            #expect(try await outbox.texts(owners) == ["other berta"])
            try await register("other", "carla")
            #expect(try await outbox.texts(owners) == ["other carla"])
            #expect(
                try await outbox.texts(
                    "SELECT tenant_id FROM postbell.events WHERE name = 'device.push_token_invalidated' ORDER BY id")
                    == ["default", "other"])
        }
    }

    static let refusals: [(state: String, call: String)] = [
        ("PB104", "'anna', 'phone', 'pigeon', 'app', 'token-1234'"),
        ("PB103", "'anna', 'phone', 'apns', 'app', 'aabbccddeeff0011'"),
        ("PB103", "'anna', 'phone', 'apns', 'app', 'aabbccddeeff0011', 'staging'"),
        ("PB103", "'anna', 'phone', 'fcm', 'app', 'token-1234', 'production'"),
        ("PB102", "'anna', 'phone', 'apns', 'app', 'not-hexadecimal!', 'production'"),
        ("PB102", "'anna', 'phone', 'apns', 'app', 'aabbccddeeff001', 'production'"),
        ("PB102", "'anna', 'phone', 'fcm', 'app', repeat('x', 1025)"),
        ("PB102", "'anna', 'phone', 'fcm', 'app', NULL"),
        ("PB105", "'anna smith', 'phone', 'fcm', 'app', 'token-1234'"),
        ("PB105", "'anna', NULL, 'fcm', 'app', 'token-1234'"),
        ("PB105", "'anna', 'phone', 'fcm', 'app/..', 'token-1234'"),
        ("PB105", "'anna', 'phone', 'fcm', 'app', 'token-1234', kind => 'toaster'"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `A registration that cannot work is refused`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for refusal in Self.refusals {
                let state = await outbox.admin.refusal("SELECT postbell.device_register(\(refusal.call))")
                #expect(state == refusal.state, "\(refusal.call)")
            }
            let devices = try await outbox.value("SELECT count(*) FROM postbell.devices")
            #expect(devices == "0")
        }
    }

    /// S3: a late device joins what still waits in the queue, and nothing that has ended or is being sent on its route.
    @Test(arguments: DatabaseServer.allCases)
    func `A late device joins what waits and nothing else`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a", "b", "c")
            try await outbox.enqueue("d", more: "not_before => now() + interval '1 h'")
            try await outbox.enqueue("e", to: "berta")
            let worker = try await outbox.worker()
            let done = try await worker.claimed(1)
            _ = try await worker.settle(done.flush(1))
            _ = try await worker.claimed(1)
            try await outbox.device("pixel", route: 2)
            #expect(
                try await outbox.texts(
                    """
                    SELECT concat_ws(' ', dedupe_key, route_no, CASE WHEN prior THEN 'prior' END)
                    FROM postbell.queue q JOIN postbell.outbox o ON o.id = q.notification_id ORDER BY 1
                    """) == ["c 1", "c 2 prior", "d 1", "d 2 prior", "e 0"])
            #expect(try await outbox.places() == ["a dispatched", "b lease", "c queue", "d queue", "e queue"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A first device ends the wait of what is meant for it`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                #"SELECT postbell.define_kind('other', 'template', '{}', '{"title": "x"}', apps => '{app.two}')"#)
            try await outbox.enqueue("a")
            try await outbox.run("SELECT postbell.enqueue('other', 'anna', 'b')")
            try await outbox.device()
            let batch = try await outbox.worker().claimed()
            #expect(batch.devices == [[1]], "b is for another app and goes on waiting")
            #expect(try await outbox.texts("SELECT route_no FROM postbell.queue") == ["0"])
        }
    }

    /// A device that changes its route keeps its number, and so its history.
    @Test(arguments: DatabaseServer.allCases)
    func `A device that moves to another route is not sent to again`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("pixel", route: 2)
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            _ = try await worker.settle(batch.flush(1))
            try await outbox.device(route: 2)
            let other = try await worker.claimed(route: 2)
            #expect(other.devices == [[2]])
            _ = try await worker.settle(other.flush(1))
        }
    }

    /// What a device had on its former route is known without the row on its new one, which may be locked.
    @Test(arguments: DatabaseServer.allCases)
    func `A device that moves while its row is locked is not sent to again`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("pixel", route: 2)
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            _ = try await worker.settle(batch.flush(1))
            let holder = try await outbox.database.connect()
            try await holder.execute("BEGIN; SELECT FROM postbell.queue FOR UPDATE")
            try await outbox.device(route: 2)
            try await holder.execute("COMMIT")
            let other = try await worker.claimed(route: 2)
            #expect(other.devices == [[2]])
            _ = try await worker.settle(other.flush(1))
            await holder.close()
        }
    }

    /// Nor is it known to a registration whose transaction began before the notification was made.
    @Test(arguments: DatabaseServer.allCases)
    func `A device that moves around an enqueue and its send is not sent to again`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("pixel", route: 2)
            let backend = try await outbox.database.connect()
            try await backend.execute("BEGIN; \(Outbox.registration(route: 2))")
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            #expect(batch.devices == [[1]])
            _ = try await worker.settle(batch.flush(1))
            try await backend.execute("COMMIT")
            let other = try await worker.claimed(route: 2)
            #expect(other.devices == [[2]] && !other.dispatches[0].prior)
            _ = try await worker.settle(other.flush(1))
            await backend.close()
        }
    }

    /// Only who has moved lately costs the claim a look into the ledger, and a row that nobody is left for says so.
    @Test(arguments: DatabaseServer.allCases)
    func `A device that was the only one on its new route leaves nobody there`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            try await outbox.run(
                "INSERT INTO postbell.queue (due_at, notification_id, tenant_no, route_no, urgency) "
                    + "SELECT due_at, notification_id, tenant_no, 2, urgency FROM postbell.queue")
            let worker = try await outbox.worker()
            _ = try await worker.settle(try await worker.claimed().flush(1))
            try await outbox.device(route: 2)
            let other = try await worker.claimed(route: 2)
            #expect(other.devices == [[]] && other.dispatches[0].nobody == .noDevice)
            var end = other.flush(1)
            end.ends = [PositionEnd(position: 1, status: .dispatched, reason: .noDevice, wholeNotification: false)]
            _ = try await worker.settle(end)
        }
    }

    /// S3: a row that a worker holds at this moment is not waited for.
    @Test(arguments: DatabaseServer.allCases)
    func `A registration skips rows that a worker holds`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            try await worker.connection.execute("BEGIN")
            _ = try await worker.claimed()
            try await outbox.run("SET lock_timeout = '100ms'")
            try await outbox.device("pixel", route: 2)
            try await worker.connection.execute("COMMIT")
            #expect(try await outbox.texts("SELECT route_no || ' ' || place FROM postbell.places") == ["1 lease"])
        }
    }
}
