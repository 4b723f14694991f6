import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What ends or silences a device: a back end's call, in its own transaction, after which nothing is sent to it.
@Suite(.timeLimit(.minutes(5)))
struct RevocationTests {
    private static let states =
        "SELECT concat_ws(' ', client_device_id, status, disabled_reason) FROM postbell.devices ORDER BY device_no"
    private static let phone =
        "(SELECT id FROM postbell.devices WHERE client_device_id = 'phone' AND principal_id = 'anna')"

    /// A call, the reason at the re-check for what was claimed before it, and why a claim after it reaches nobody.
    static let calls: [(call: String, recheck: SettlementReason, nobody: SettlementReason)] = [
        ("device_revoke(\(phone))", .revoked, .revoked),
        ("device_revoke(device_ref => 'd', reason => 'logout')", .revoked, .revoked),
        ("device_revoke(session_ref => 'x', reason => 'erased')", .revoked, .revoked),
        ("device_revoke(principal_id => 'anna')", .revoked, .revoked),
        ("device_delete(\(phone))", .revoked, .noDevice),
        ("device_mute(\(phone), '{note}')", .muted, .muted),
    ]

    static let cases = DatabaseServer.allCases.flatMap { server in calls.indices.map { (server, $0) } }

    @Test(arguments: cases)
    func `Nothing is sent after the call, and nobody waits for it`(server: DatabaseServer, index: Int) async throws {
        let (call, recheck, nobody) = Self.calls[index]
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SELECT postbell.device_register('anna', 'phone', 'apns', 'app.one', 'aabbccddeeff0011', 'production',
                    device_ref => 'd', session_ref => 'x')
                """)
            try await outbox.device(of: "berta")
            try await outbox.enqueue("a", "b")
            try await outbox.enqueue("c", to: "berta")
            let worker = try await outbox.worker()
            let held = try await worker.claimed(1)
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            try await registrar.execute("BEGIN")
            try await registrar.execute("SET LOCAL lock_timeout = '100 ms'")
            let asked = call.replacing(Self.phone, with: "'\(try await outbox.value("SELECT \(Self.phone)"))'")
            try await registrar.execute("SELECT postbell.\(asked)")
            #expect(try await worker.recheck(held) == [nil], "not committed, not there")
            #expect(try await worker.apply(held.effect(.succeeded)) == [0], "tried again later")
            try await registrar.execute("COMMIT")
            #expect(try await worker.recheck(held) == [recheck])
            let next = try await worker.claimed()
            #expect(next.devices == [[], [2]])
            #expect(next.dispatches.map(\.nobody) == [nobody, nil])
            _ = try await worker.settle(held.flush(1, outcome: Outcome(.skipped, reason: recheck.rawValue)))
            var flush = next.flush(1, 2)
            flush.ends = [PositionEnd(position: 1, status: .dispatched, reason: nobody, wholeNotification: false)]
            _ = try await worker.settle(flush)
            await registrar.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Selectors hold together, and end one tenant's devices only`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            func register(_ client: String, of principal: String, session: String, tenant: String) async throws {
                try await outbox.run(
                    """
                    SET postbell.tenant_id = '\(tenant)';
                    SELECT postbell.device_register('\(principal)', '\(client)', 'fcm', 'app.two',
                        'token-\(client)', session_ref => '\(session)')
                    """)
            }
            try await register("phone", of: "anna", session: "x", tenant: "default")
            try await register("tablet", of: "anna", session: "y", tenant: "default")
            try await register("pixel", of: "berta", session: "x", tenant: "default")
            try await register("other", of: "anna", session: "x", tenant: "other")
            try await outbox.run("RESET postbell.tenant_id")
            func revoke(_ arguments: String) async throws -> String {
                try await outbox.value("SELECT postbell.device_revoke(\(arguments))")
            }
            #expect(try await revoke("principal_id => 'anna', session_ref => 'x'") == "1")
            #expect(try await revoke("session_ref => 'x'") == "1", "the first is revoked already")
            #expect(try await revoke("session_ref => 'unheard'") == "0")
            #expect(
                try await revoke("(SELECT id FROM postbell.devices WHERE client_device_id = 'other')") == "0")
            #expect(
                try await outbox.texts(Self.states) == [
                    "phone revoked device_revoked", "tablet active", "pixel revoked device_revoked", "other active",
                ])
            #expect(
                try await outbox.texts("SELECT tenant_id FROM postbell.events WHERE name = 'device.revoked'")
                    == ["default", "default"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A revoked device comes back, an erased one does not`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            func revoke(_ reason: String) async throws {
                try await outbox.run("SELECT postbell.device_revoke(principal_id => 'anna', reason => '\(reason)')")
            }
            try await revoke("logout")
            try await revoke("device_revoked")
            #expect(try await outbox.texts(Self.states) == ["phone revoked logout"], "the first reason stays")
            try await outbox.device()
            #expect(try await outbox.texts(Self.states) == ["phone active"])
            try await revoke("logout")
            try await revoke("erased")
            #expect(try await outbox.texts(Self.states) == ["phone revoked erased"])
            #expect(
                await outbox.admin.refusal(
                    "SELECT postbell.device_register('anna', 'phone', 'fcm', 'app.two', 'another-token')") == "PB106")
            #expect(
                try await outbox.texts(
                    "SELECT name || ' ' || (detail ->> 'reason') FROM postbell.events "
                        + "WHERE name = 'device.revoked' ORDER BY id")
                    == ["device.revoked logout", "device.revoked logout", "device.revoked erased"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A deleted device leaves its ledger and frees its token`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            _ = try await worker.settle(batch.flush(1))
            let phone = try await outbox.value("SELECT \(Self.phone)")
            #expect(try await outbox.value("SELECT postbell.device_delete('\(phone)')") == "t")
            #expect(try await outbox.value("SELECT postbell.device_delete('\(phone)')") == "f")
            #expect(try await outbox.ledger() == ["a 1 delivered final"])
            #expect(try await worker.apply(batch.effect(.tokenInvalid)) == [])
            try await outbox.device()
            #expect(try await outbox.value("SELECT device_no FROM postbell.devices") == "2")
            #expect(
                try await outbox.texts("SELECT name FROM postbell.events ORDER BY id")
                    == ["device.registered", "device.deleted", "device.registered"])
        }
    }

    static let refusals: [(state: String, call: String)] = [
        ("PB105", "device_revoke()"), ("PB105", "device_revoke(\(phone), reason => 'whim')"),
        ("PB105", "device_revoke(\(phone), reason => NULL)"), ("PB105", "device_mute(\(phone), '{unheard}')"),
        ("PB105", "device_mute(\(phone), '{NULL}')"), ("PB101", "device_mute(gen_random_uuid(), '{note}')"),
        ("PB101", "device_mute(NULL, '{}')"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `A call that cannot mean anything is refused`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            for refusal in Self.refusals {
                #expect(
                    await outbox.admin.refusal("SELECT postbell.\(refusal.call)") == refusal.state, "\(refusal.call)")
            }
            #expect(try await outbox.texts(Self.states) == ["phone active"])
            try await outbox.run("SELECT postbell.device_mute(\(Self.phone), '{note,note}')")
            #expect(try await outbox.value("SELECT muted_kinds FROM postbell.devices") == "{note}")
            try await outbox.run("SELECT postbell.device_mute(\(Self.phone), NULL)")
            #expect(try await outbox.value("SELECT muted_kinds FROM postbell.devices") == "{}")
            try await outbox.run("SET postbell.tenant_id = 'other'")
            #expect(
                await outbox.admin.refusal("SELECT postbell.device_mute(\(Self.phone), '{note}')") == "PB101",
                "what is another tenant's is unknown")
        }
    }

    /// M5: without one order of locks, each would hold the row that the other waits for.
    @Test(arguments: DatabaseServer.allCases)
    func `Two phones that swap their tokens do not block each other`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            func call(_ principal: String, _ token: String) -> String {
                "SELECT postbell.device_register('\(principal)', 'phone', 'fcm', 'app.two', 'token-\(token)')"
            }
            try await outbox.run(call("anna", "one"))
            try await outbox.run(call("berta", "two"))
            // Both rows are held, so that each registration has begun to wait before the other goes on.
            var holders: [PostgresConnection] = []
            for number in 1...2 {
                let holder = try await outbox.database.connect()
                try await holder.execute(
                    "BEGIN; SELECT 1 FROM postbell.devices WHERE device_no = \(number) FOR UPDATE")
                holders.append(holder)
            }
            let (one, two) = (try await outbox.database.connect(), try await outbox.database.connect())
            func waiting(_ count: Int) async throws {
                let blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while try await outbox.value(blocked + " AND datname = current_database()") != "\(count)" {}
            }
            async let first = one.refusal(call("anna", "two"))
            try await waiting(1)
            async let second = two.refusal(call("berta", "one"))
            try await waiting(2)
            for holder in holders.reversed() {
                try await holder.execute("COMMIT")
                await holder.close()
            }
            let refusals = await [first, second]
            #expect(refusals == [nil, nil])
            await one.close()
            await two.close()
            #expect(
                try await outbox.texts("SELECT principal_id FROM postbell.devices WHERE token IS NOT NULL ORDER BY 1")
                    == ["anna", "berta"])
        }
    }
}
