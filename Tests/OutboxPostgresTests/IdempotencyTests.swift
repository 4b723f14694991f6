import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Idempotency keys of `device_register`: one answer per key, whatever becomes of the device.
@Suite(.timeLimit(.minutes(5)))
struct IdempotencyTests {
    /// A registration of anna's phone with a key.
    private static func call(
        _ key: String = "first", token: String = "a-token-of-anna", principal: String = "anna", more: String = ""
    ) -> String {
        "SELECT r::text FROM postbell.device_register('\(principal)', 'phone', 'fcm', 'app.two', '\(token)', "
            + "idempotency_key => '\(key)'\(more)) r"
    }

    private static let events = "SELECT name FROM postbell.events ORDER BY id"

    @Test(arguments: DatabaseServer.allCases)
    func `The same key and request have the same answer, also after the device has changed`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            let answer = try await outbox.value(Self.call())
            let before = try await outbox.texts("SELECT d::text FROM postbell.devices d")
            #expect(try await outbox.value(Self.call()) == answer)
            #expect(try await outbox.texts("SELECT d::text FROM postbell.devices d") == before)
            try await outbox.run(
                "SELECT postbell.device_register('anna', 'phone', 'fcm', 'app.two', 'another-token-of-anna')")
            try await outbox.run("SELECT postbell.device_revoke(principal_id => 'anna')")
            #expect(try await outbox.value(Self.call()) == answer)
            #expect(try await outbox.value("SELECT status FROM postbell.devices") == "revoked")
            try await outbox.run("SELECT postbell.device_delete(id) FROM postbell.devices")
            try await outbox.run("UPDATE postbell.settings SET value = 'apns' WHERE name = 'providers'")
            #expect(try await outbox.value(Self.call()) == answer)
            #expect(try await outbox.value("SELECT count(*) FROM postbell.devices") == "0")
            #expect(
                try await outbox.texts(Self.events)
                    == ["device.registered", "device.push_token_updated", "device.revoked", "device.deleted"])
        }
    }

    /// Each differs from the first request in one argument.
    static let others = [
        call(token: "another-token"), call(more: ", name => 'Phone'"), call(more: ", pending => true"),
        call(more: ", session_ref => 's'"),
        call(token: "aabbccddeeff0011", more: ", environment => 'sandbox'")
            .replacing("'fcm'", with: "'apns'"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `The same key with another request is a conflict, and changes nothing`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.call())
            for other in Self.others {
                #expect(await outbox.admin.refusal(other) == "PB107", "\(other)")
            }
            #expect(try await outbox.texts(Self.events) == ["device.registered"])
            // Another person, another tenant, another key: none of them is in the way.
            try await outbox.run(Self.call(token: "token-of-berta", principal: "berta"))
            try await outbox.run("SET postbell.tenant_id = 'other'; \(Self.call(token: "token-of-other"))")
            try await outbox.run("RESET postbell.tenant_id; \(Self.call("second", token: "another-token"))")
            #expect(try await outbox.value("SELECT count(*) FROM postbell.idempotency_keys") == "4")
            #expect(await outbox.admin.refusal(Self.call("with a space")) == "PB105")
        }
    }

    /// APNs' tokens are compared as they are kept.
    @Test(arguments: DatabaseServer.allCases)
    func `A token in capitals is the same request`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            func call(_ token: String) -> String {
                "SELECT r::text FROM postbell.device_register('anna', 'phone', 'apns', 'app.one', '\(token)', "
                    + "'production', idempotency_key => 'k') r"
            }
            let first = try await outbox.value(call("AABBCCDDEEFF0011"))
            #expect(try await outbox.value(call("aabbccddeeff0011")) == first)
        }
    }

    /// The first is open when the second begins; it ends in both ways.
    @Test(arguments: DatabaseServer.allCases)
    func `Concurrent duplicates make one device and one event, and answer alike`(server: DatabaseServer) async throws {
        for end in ["COMMIT", "ROLLBACK"] {
            try await Outbox.on(server) { outbox in
                let (first, second) = (try await outbox.database.connect(), try await outbox.database.connect())
                try await first.execute("BEGIN")
                let answer = try await first.texts(Self.call())
                async let waiting = second.texts(Self.call())
                let blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while try await outbox.value(blocked + " AND datname = current_database()") != "1" {}
                try await first.execute(end)
                let other = try await waiting
                #expect((other == answer) == (end == "COMMIT"), "\(end)")
                #expect(try await outbox.texts(Self.events) == ["device.registered"], "\(end)")
                #expect(try await outbox.value("SELECT count(*) FROM postbell.devices") == "1", "\(end)")
                #expect(try await outbox.texts(Self.call()) == other, "\(end)")
                await first.close()
                await second.close()
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `No key can be asked which token it was for`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.call())
            let plain = "SELECT count(*) FROM postbell.idempotency_keys k WHERE k::text LIKE '%a-token-of-anna%'"
            #expect(try await outbox.value(plain) == "0")
            // With another secret the same request has another hash: without the secret no token can be tried.
            try await outbox.run("UPDATE postbell.secrets SET value = 'x' WHERE name = 'idempotency'")
            #expect(await outbox.admin.refusal(Self.call()) == "PB107")
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A key counts for a day, and is removed by a worker then`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let aged =
                "UPDATE postbell.idempotency_keys SET created_at = created_at - interval '24 hours 1 second' "
                + "WHERE key = "
            for key in ["first", "second", "third"] { try await outbox.run(Self.call(key)) }
            try await outbox.run(aged + "'first'")
            try await outbox.run(Self.call(token: "another-token"))
            #expect(await outbox.admin.refusal(Self.call()) == "PB107", "the key is the new request's")
            try await outbox.run(aged + "'second'; " + aged + "'third'")
            let worker = try await outbox.worker()
            func prune(_ limit: Int) async throws -> Int64 {
                try await worker.query(PruneKeysStatement.command(limit: limit)).int8(0, 0)
            }
            let holder = try await outbox.database.connect()
            try await holder.execute("BEGIN; SELECT FROM postbell.idempotency_keys WHERE key = 'second' FOR UPDATE")
            #expect(try await prune(10) == 1, "what is being replaced is left alone, and not waited for")
            try await holder.execute("COMMIT")
            for (limit, pruned) in [(0, 0), (10, 1), (10, 0)] as [(Int, Int64)] {
                #expect(try await prune(limit) == pruned)
            }
            #expect(try await outbox.texts("SELECT key FROM postbell.idempotency_keys") == ["first"])
            await holder.close()
        }
    }
}
