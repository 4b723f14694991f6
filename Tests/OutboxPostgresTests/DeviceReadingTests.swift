import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// What a back end reads of devices: one, or a person's in pages; never a token, and nothing of others.
@Suite(.timeLimit(.minutes(5)))
struct DeviceReadingTests {
    private static func register(_ client: String, of principal: String = "anna", more: String = "") -> String {
        "SELECT postbell.device_register('\(principal)', '\(client)', 'fcm', 'app.two', "
            + "'token-of-\(principal)-\(client)'\(more))"
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A device is shown with a fingerprint and without its token`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            let made = try await registrar.texts(
                "SELECT device_id FROM postbell.device_register('anna', 'phone', 'apns', 'app.one', "
                    + "'AABBCCDDEEFF0011', 'sandbox', 'Phone', 'mobile', 'ios', 'd', 's')")
            let get = "FROM postbell.device_get('\(made[0])') g"
            let shown = try await registrar.texts(
                """
                SELECT concat_ws(' ', principal_id, client_device_id, name, kind, platform, app, provider, environment,
                    status, muted_kinds, device_ref, session_ref, token_fingerprint ~ '^[0-9a-z]{6}$') \(get)
                """)
            #expect(shown == ["anna phone Phone mobile ios app.one apns sandbox active {} d s t"])
            let text = try await registrar.texts("SELECT g::text \(get)")
            #expect(!text[0].lowercased().contains("aabbccdd"))
            try await outbox.run("SELECT postbell.device_revoke('\(made[0])', reason => 'logout')")
            #expect(
                try await registrar.texts("SELECT concat_ws(' ', status, disabled_reason, token_fingerprint) \(get)")
                    == ["revoked logout"], "where there is no token there is no fingerprint")
            await registrar.close()
        }
    }

    /// Calls by which somebody else could learn of anna's phone or change it, and what they answer about nobody's.
    static let calls: [(call: String, answer: [String])] = [
        ("SELECT g::text FROM postbell.device_get($1) g", []),
        ("SELECT g::text FROM postbell.device_get($1, 'berta') g", []),
        ("SELECT postbell.device_revoke($1)", ["0"]), ("SELECT postbell.device_delete($1)", ["f"]),
        ("SELECT postbell.device_activate($1)", ["f"]), ("SELECT postbell.device_mute($1, '{note}')", ["PB101"]),
        ("SELECT postbell.device_test($1)", ["PB101"]), ("SELECT postbell.device_test($1, 'k')", ["PB101"]),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `A foreign device and an unknown one answer alike`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.register("phone"))
            let phone = try await outbox.value("SELECT id FROM postbell.devices")
            let before = try await outbox.value("SELECT d::text FROM postbell.devices d")
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            for session in ["SET postbell.tenant_id = 'other'", "SET postbell.principal_id = 'berta'"] {
                try await registrar.execute("RESET ALL; SET ROLE postbell_registrar; \(session)")
                for (call, answer) in Self.calls {
                    for device in ["'\(phone)'", "gen_random_uuid()"] {
                        let sql = call.replacing("$1", with: device)
                        let (said, message) = await registrar.said(sql)
                        #expect(said == answer, "\(session): \(sql)")
                        #expect(!message.contains(phone) && !message.contains("anna"), "\(session): \(message)")
                    }
                }
                #expect(try await registrar.texts("SELECT g::text FROM postbell.device_list('anna') g") == [])
            }
            #expect(await registrar.refusal(Self.register("tablet")) == "PB005", "berta's session is not anna's")
            #expect(try await outbox.value("SELECT d::text FROM postbell.devices d") == before)
            // With the principal named it is one statement more that a back end need not make.
            try await registrar.execute("RESET ALL; SET ROLE postbell_registrar")
            #expect(
                try await registrar.texts("SELECT client_device_id FROM postbell.device_get('\(phone)', 'anna')")
                    == ["phone"])
            #expect(try await registrar.texts("SELECT 1 FROM postbell.device_get('\(phone)', 'berta')") == [])
            await registrar.close()
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Pages are stable while devices come and go`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for number in 1...7 { try await outbox.run(Self.register("device-\(number)")) }
            try await outbox.run(Self.register("device-9", of: "berta"))
            func page(after: String?) async throws -> [String] {
                let argument = after.map { "'\($0)'" } ?? "NULL"
                return try await outbox.texts(
                    "SELECT client_device_id FROM postbell.device_list('anna', \(argument), 3)")
            }
            let first = try await page(after: nil)
            #expect(first == ["device-1", "device-2", "device-3"])
            // The last of the page goes, one comes before it and one behind it, and all of the rest change.
            try await outbox.run(
                "SELECT postbell.device_delete(id) FROM postbell.devices WHERE client_device_id = 'device-3'")
            for new in ["device-0", "device-41"] { try await outbox.run(Self.register(new)) }
            try await outbox.run("SELECT postbell.device_revoke(principal_id => 'anna')")
            #expect(try await page(after: "device-3") == ["device-4", "device-41", "device-5"])
            #expect(try await page(after: "device-5") == ["device-6", "device-7"])
            #expect(try await page(after: "device-7") == [])
            for limit in ["0", "1001", "NULL"] {
                #expect(
                    await outbox.admin.refusal("SELECT postbell.device_list('anna', NULL, \(limit))") == "PB105")
            }
        }
    }

    /// Somebody has very many devices: a page costs what is on it.
    @Test(arguments: DatabaseServer.allCases)
    func `A page of very many devices reads no more than a page`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.importDevices(count: 3000)
            var rows: [String] = []
            let read = try await outbox.reading(of: "devices") {
                rows = try await outbox.texts("SELECT device_id FROM postbell.device_list('anna', 'device-1500', 50)")
            }
            #expect(rows.count == 50)
            for (table, read) in read { #expect(read.walked == 0 && read.fetched <= 60, "\(table) \(read)") }
        }
    }
}
