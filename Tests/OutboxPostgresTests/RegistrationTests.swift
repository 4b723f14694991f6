import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// The rules of a registration: whose token it is, which earlier ones it ends, who has to approve it, who is served.
@Suite(.timeLimit(.minutes(5)))
struct RegistrationTests {
    private static let states =
        "SELECT concat_ws(' ', client_device_id, principal_id, status, disabled_reason, token) "
        + "FROM postbell.devices ORDER BY device_no"
    private static let events =
        "SELECT concat_ws(' ', e.name, d.client_device_id, e.detail ->> 'reason') "
        + "FROM postbell.events e LEFT JOIN postbell.devices d ON d.id = e.device_id ORDER BY e.id"

    private static func register(
        _ client: String, of principal: String = "anna", token: String, app: String = "app.two", more: String = ""
    ) -> String {
        "SELECT r::text FROM postbell.device_register('\(principal)', '\(client)', 'fcm', '\(app)', "
            + "'token-\(token)'\(more)) r"
    }

    // MARK: Whose

    @Test(arguments: DatabaseServer.allCases)
    func `A registration renews the device of its person and makes another for somebody else`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.register("phone", token: "one"))
            let identity = "SELECT concat(device_no, ' ', id, ' ', created_at) FROM postbell.devices"
            let first = try await outbox.value(identity)
            try await outbox.run(Self.register("phone", token: "two", more: ", name => 'Phone'"))
            #expect(try await outbox.value(identity) == first)
            try await outbox.run(Self.register("phone", of: "berta", token: "three"))
            #expect(
                try await outbox.texts(Self.states)
                    == ["phone anna active token-two", "phone berta active token-three"])
        }
    }

    /// Nobody can tell from the answer, the statements that run or what is seen afterwards whether somebody had it.
    @Test(arguments: DatabaseServer.allCases)
    func `A token that another tenant has moves as one that nobody has`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for tenant in ["other", "mine"] {
                try await outbox.run(
                    "SET postbell.tenant_id = '\(tenant)'; \(Self.register("warm", of: "zoe", token: "of-\(tenant)"))")
            }
            try await outbox.run(
                "SET postbell.tenant_id = 'other'; \(Self.register("phone", of: "eve", token: "foreign"))")
            try await outbox.run("SET track_functions = 'all'; SET postbell.tenant_id = 'mine'")
            /// What a registration answers, apart from its own id and fingerprint, and which functions ran how often.
            func registered(_ client: String, token: String) async throws -> [String] {
                // What is not reported yet of earlier transactions would be counted too.
                try await outbox.run("SELECT pg_stat_force_next_flush()")
                try await outbox.run("BEGIN")
                let answer = try await outbox.texts(
                    "SELECT device_status || ' ' || (token_fingerprint ~ '^[0-9a-z]{6}$') FROM "
                        + "postbell.device_register('anna', '\(client)', 'fcm', 'app.two', 'token-\(token)')")
                let calls = try await outbox.texts(
                    "SELECT funcname || ' ' || calls FROM pg_stat_xact_user_functions ORDER BY 1")
                try await outbox.run("COMMIT")
                return answer + calls
            }
            let fresh = try await registered("phone", token: "fresh")
            let taken = try await registered("tablet", token: "foreign")
            #expect(taken == fresh)
            #expect(fresh.contains("store_registration 1"), "the functions are counted")
            #expect(
                try await outbox.texts("SELECT client_device_id FROM postbell.devices WHERE token = 'token-foreign'")
                    == ["tablet"])
            let reader = try await outbox.database.connect(role: "postbell_reader")
            try await reader.execute("SET postbell.tenant_id = 'mine'")
            #expect(
                try await reader.texts("SELECT name FROM postbell.events ORDER BY id")
                    == ["device.registered", "device.registered", "device.registered"])
            try await reader.execute("SET postbell.tenant_id = 'other'")
            #expect(
                try await reader.texts("SELECT name FROM postbell.events ORDER BY id")
                    == ["device.registered", "device.registered", "device.push_token_invalidated"])
            await reader.close()
        }
    }

    /// Team chat: a provider gives an app on one device one token, so the earlier registration of that app is over.
    @Test(arguments: DatabaseServer.allCases)
    func `An older registration of the same installation ends`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let onPhone = ", device_ref => 'phone-of-anna'"
            for (client, app) in [("old", "app.two"), ("other-app", "app.three")] {
                try await outbox.run(Self.register(client, token: client, app: app, more: onPhone))
            }
            try await outbox.run(Self.register("tablet", token: "tablet", more: ", device_ref => 'tablet-of-anna'"))
            // Who names another's device takes nothing from them.
            try await outbox.run(Self.register("old", of: "berta", token: "berta", more: onPhone))
            try await outbox.run(Self.register("new", token: "new", more: onPhone))
            #expect(
                try await outbox.texts(Self.states) == [
                    "old anna disabled token_invalid", "other-app anna active token-other-app",
                    "tablet anna active token-tablet", "old berta active token-berta", "new anna active token-new",
                ])
            #expect(
                try await outbox.texts(Self.events).filter { !$0.hasPrefix("device.registered") }
                    == ["device.push_token_invalidated old replaced"])
            // The same again ends nothing more, and the old one comes back when it registers.
            try await outbox.run(Self.register("new", token: "new", more: onPhone))
            try await outbox.run(Self.register("old", token: "old"))
            #expect(
                try await outbox.texts(Self.events).filter { !$0.hasPrefix("device.registered") } == [
                    "device.push_token_invalidated old replaced", "device.push_token_invalidated new replaced",
                    "device.push_token_updated old",
                ])
        }
    }

    // MARK: Approval

    @Test(arguments: DatabaseServer.allCases)
    func `A pending device is no target until it is approved, and joins what waits then`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            let pending = Self.register("phone", token: "one", more: ", pending => true")
            try await outbox.run(pending)
            try await outbox.enqueue("a", more: "not_before => now() + interval '1 h'")
            #expect(try await outbox.texts("SELECT route_no FROM postbell.queue") == ["0"])
            let phone = try await outbox.value("SELECT id FROM postbell.devices")
            #expect(await outbox.admin.refusal("SELECT postbell.device_test('\(phone)')") == "PB109")
            // It approves itself by no registration.
            try await outbox.run(Self.register("phone", token: "two"))
            #expect(try await outbox.texts(Self.states) == ["phone anna pending token-two"])
            #expect(try await outbox.texts("SELECT route_no FROM postbell.queue") == ["0"])
            let activate = "SELECT postbell.device_activate('\(phone)')"
            #expect(try await outbox.texts("\(activate) UNION ALL \(activate)") == ["t", "f"])
            #expect(try await outbox.texts("SELECT route_no || ' ' || prior FROM postbell.queue") == ["2 true"])
            // What was approved once needs no second time; what was revoked does, where the back end says so.
            try await outbox.run(pending)
            #expect(try await outbox.texts(Self.states) == ["phone anna active token-one"])
            try await outbox.run("SELECT postbell.device_revoke('\(phone)'); \(pending)")
            #expect(try await outbox.texts(Self.states) == ["phone anna pending token-one"])
            try await outbox.run("SELECT postbell.device_revoke('\(phone)')")
            #expect(try await outbox.value(activate) == "f", "a revoked device is not approved")
            try await outbox.run(Self.register("phone", token: "one"))
            #expect(try await outbox.texts(Self.states) == ["phone anna active token-one"])
            #expect(
                try await outbox.texts(Self.events) == [
                    "device.registered phone", "device.push_token_updated phone", "device.activated phone",
                    "device.push_token_updated phone", "device.revoked phone device_revoked",
                    "device.push_token_updated phone", "device.revoked phone device_revoked",
                    "device.push_token_updated phone",
                ])
        }
    }

    // MARK: What is served

    @Test(arguments: DatabaseServer.allCases)
    func `A provider that the instance does not serve is refused`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            func states(_ setting: String) async throws -> [String?] {
                try await outbox.run("UPDATE postbell.settings SET value = '\(setting)' WHERE name = 'providers'")
                let fcm = await outbox.admin.refusal(Self.register("phone", token: "one"))
                return [fcm, await outbox.admin.refusal(Outbox.registration("tablet"))]
            }
            #expect(try await states("apns") == ["PB104", nil])
            #expect(try await states("fcm") == [nil, "PB104"])
            #expect(try await states("") == ["PB104", "PB104"])
            #expect(try await states("apns, fcm") == [nil, nil])
            try await outbox.run("DELETE FROM postbell.settings WHERE name = 'providers'")
            #expect(await outbox.admin.refusal(Self.register("phone", token: "one")) == nil)
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `An APNs token is kept in lower case, another one as it is`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SELECT postbell.device_register('anna', 'short', 'apns', 'app.one', 'AABBCCDDEEFF0011', 'production');
                SELECT postbell.device_register('anna', 'long', 'apns', 'app.one', repeat('Ab', 80), 'sandbox');
                SELECT postbell.device_register('anna', 'fcm', 'fcm', 'app.two', 'cX:APA91b-_Token');
                SELECT postbell.device_register('berta', 'phone', 'apns', 'app.one', 'aabbccddeeFF0011', 'sandbox');
                """)
            #expect(
                try await outbox.texts("SELECT left(token, 20) FROM postbell.devices ORDER BY device_no")
                    == ["aabbccddeeff0011", "abababababababababab", "cX:APA91b-_Token", "aabbccddeeff0011"],
                "the same number is another token in the other environment")
            try await outbox.run(
                "SELECT postbell.device_register('carla', 'phone', 'apns', 'app.one', 'AABBCCDDEEFF0011', 'sandbox')")
            #expect(
                try await outbox.texts("SELECT principal_id FROM postbell.devices WHERE token LIKE 'aabb%' ORDER BY 1")
                    == ["anna", "carla"])
        }
    }

    // MARK: Kinds

    @Test(arguments: DatabaseServer.allCases)
    func `A device that mutes a kind is sent the others`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(#"SELECT postbell.define_kind('call', 'template', '{}', '{"title": "Call"}')"#)
            try await outbox.device()
            try await outbox.device("tablet")
            try await outbox.run(
                "SELECT postbell.device_mute(id, '{note}') FROM postbell.devices WHERE client_device_id = 'phone'")
            try await outbox.enqueue("a")
            try await outbox.run("SELECT postbell.enqueue('call', 'anna', 'b')")
            let batch = try await outbox.worker().claimed()
            #expect(batch.devices == [[2], [1, 2]])
        }
    }

    // MARK: Events

    /// Agent platform: registered, updated, revoked, invalidated and deleted are one event each, under a stable key.
    @Test(arguments: DatabaseServer.allCases)
    func `The life of a device is told once, step by step, and without its tokens`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            let phone = "(SELECT id FROM postbell.devices WHERE client_device_id = 'phone')"
            let steps = [
                Self.register("phone", token: "first"), Self.register("phone", token: "second"),
                Self.register("thief", of: "berta", token: "second"), Self.register("phone", token: "third"),
                "SELECT postbell.device_revoke(\(phone))", Self.register("phone", token: "fourth"),
                "SELECT postbell.device_delete(\(phone))",
            ]
            for step in steps {
                try await outbox.run(step)
                // The same again says nothing new; a token that moved is the thief's own affair.
                try await outbox.run(step)
            }
            #expect(
                try await outbox.texts(
                    "SELECT name FROM postbell.events WHERE principal_id = 'anna' ORDER BY id") == [
                        "device.registered", "device.push_token_updated", "device.push_token_invalidated",
                        "device.push_token_updated", "device.revoked", "device.push_token_updated", "device.deleted",
                    ])
            #expect(
                try await outbox.value(
                    """
                    SELECT bool_and(detail ->> 'fingerprint' ~ '^[0-9a-z]{6}$' AND e::text !~ 'token-')
                    FROM postbell.events e
                    """) == "t")
            #expect(
                try await outbox.value("SELECT count(DISTINCT key) = count(*) FROM postbell.events") == "t")
        }
    }

    // MARK: Bounds

    /// Agent platform: what the schema itself does not let through, and what the audit finds that was written by hand.
    @Test(arguments: DatabaseServer.allCases)
    func `The registry holds its bounds by index, row security and audit`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.register("phone", token: "one"))
            try await outbox.run(Self.register("tablet", of: "berta", token: "two"))
            for (change, state) in [
                ("token = 'token-one'", "23505"), ("status = 'lost'", "23514"), ("principal_id = NULL", "23502"),
                ("client_device_id = 'phone', principal_id = 'anna'", "23505"),
            ] {
                let update = "UPDATE postbell.devices SET \(change) WHERE client_device_id = 'tablet'"
                #expect(await outbox.admin.refusal(update) == state, "\(change)")
            }
            for change in ["environment = 'sandbox'", "provider = 'apns'", "status = 'revoked'", "token_seq = 0"] {
                try await outbox.run("BEGIN; UPDATE postbell.devices SET \(change)")
                #expect(try await outbox.faults() == ["device_shape"], "\(change)")
                try await outbox.run("ROLLBACK")
            }
            let secured = try await outbox.value(
                """
                SELECT bool_and(relrowsecurity AND relforcerowsecurity) FROM pg_class
                WHERE oid IN ('postbell.devices'::regclass, 'postbell.idempotency_keys'::regclass,
                    'postbell.events'::regclass)
                """)
            #expect(secured == "t")
        }
    }

    // MARK: Plans

    /// Generic plans that a session made while the registry was empty must not become walks through it.
    @Test(arguments: DatabaseServer.allCases)
    func `A registration reads no more of a registry that has grown`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run("ANALYZE postbell.devices, postbell.queue")
            // More than five calls: from then on a session keeps its plans.
            for number in 1...10 {
                try await outbox.run(
                    Self.register(
                        "phone", token: "early-\(number)", more: ", device_ref => 'd', idempotency_key => '\(number)'"))
            }
            let other = try await outbox.database.connect()
            try await Outbox(database: outbox.database, admin: other).importDevices(count: 3000)
            try await other.execute(
                """
                INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, not_before)
                SELECT 'person-' || n, 'note', 'key-' || n, now() + interval '1 h' FROM generate_series(1, 2000) n;
                SELECT postbell.enqueue('note', 'berta', 'waits', not_before => now() + interval '1 h')
                """)
            await other.close()
            for (client, principal) in [("phone", "anna"), ("tablet", "anna"), ("phone", "berta")] {
                let call = Self.register(
                    client, of: principal, token: "late-\(client)-\(principal)",
                    more: ", device_ref => 'd', idempotency_key => '\(client)'")
                let tables = try await outbox.reading(
                    of: "devices", "queue", "outbox", "idempotency_keys", "events"
                ) {
                    try await outbox.run(call)
                }
                for (table, read) in tables {
                    #expect(
                        read.walked == 0 && read.fetched < 100, "\(client) of \(principal): \(table) \(read)")
                }
            }
            #expect(
                try await outbox.texts(
                    "SELECT q.route_no FROM postbell.queue q JOIN postbell.outbox o ON o.id = q.notification_id "
                        + "WHERE o.principal_id = 'berta'") == ["2"], "the look through the queue was made")
        }
    }
}
