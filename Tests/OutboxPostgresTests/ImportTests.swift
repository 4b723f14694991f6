import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// `devices_import`: the rules of a registration for very many at once, and what is newer than the import stays.
@Suite(.timeLimit(.minutes(5)))
struct ImportTests {
    /// One row as JSON: an FCM device of anna unless members say otherwise.
    private static func row(_ members: String) -> String {
        let defaults = #"{"principal_id": "anna", "provider": "fcm", "app": "app.two"}"#
        return "'\(defaults)'::jsonb || '{\(members)}'"
    }

    /// registered, updated, unchanged, kept, refused and the faults of an import of these rows.
    private static func call(_ rows: String..., allOrNothing: Bool = false) -> String {
        "SELECT concat_ws(' ', registered, updated, unchanged, kept, refused, nullif(faults, '[]')) FROM "
            + "postbell.devices_import(jsonb_build_array(\(rows.joined(separator: ", "))), \(allOrNothing))"
    }

    private static let phone = row(#""client_device_id": "phone", "token": "token-phone""#)
    private static let tablet = row(#""client_device_id": "tablet", "token": "token-tablet", "name": "Tablet""#)
    private static let tokens =
        "SELECT concat_ws(' ', tenant_id, principal_id, client_device_id, status, token) "
        + "FROM postbell.devices ORDER BY device_no"
    private static let events =
        "SELECT concat_ws(' ', e.tenant_id, e.name, d.client_device_id, e.detail - 'fingerprint') "
        + "FROM postbell.events e LEFT JOIN postbell.devices d ON d.id = e.device_id ORDER BY e.id"

    @Test(arguments: DatabaseServer.allCases)
    func `An import is idempotent and tells of itself once`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let registrar = try await outbox.database.connect(role: "postbell_registrar")
            #expect(try await registrar.texts(Self.call(Self.phone, Self.tablet)) == ["2 0 0 0 0"])
            let devices = "SELECT d::text FROM postbell.devices d ORDER BY device_no"
            let before = try await outbox.texts(devices)
            #expect(try await registrar.texts(Self.call(Self.phone, Self.tablet)) == ["0 0 2 0 0"])
            #expect(try await outbox.texts(devices) == before)
            let renamed = Self.row(#""client_device_id": "phone", "token": "token-phone", "name": "Phone""#)
            #expect(try await registrar.texts(Self.call(renamed, Self.tablet)) == ["0 1 1 0 0"])
            #expect(try await registrar.texts(Self.call()) == ["0 0 0 0 0"])
            #expect(
                try await outbox.texts(Self.events) == [
                    #"default device.imported {"updated": 0, "registered": 2}"#,
                    #"default device.imported {"updated": 1, "registered": 0}"#,
                ])
            try await outbox.enqueue("a")
            #expect(try await outbox.worker().claimed(route: 2).devices == [[1, 2]])
            await registrar.close()
        }
    }

    /// What is wrong with a row, and the code that its line is answered with.
    static let faults: [(members: String, code: String)] = [
        (#""client_device_id": "x", "token": "token-xx", "provider": "pigeon""#, "device.provider"),
        (#""client_device_id": "x", "token": "aabbccddeeff0011", "provider": "apns""#, "device.environment"),
        (#""client_device_id": "x", "token": "token-xx", "environment": "production""#, "device.environment"),
        (#""client_device_id": "x", "token": "token with spaces""#, "device.token"),
        (#""client_device_id": "x""#, "device.token"),
        (#""client_device_id": "x", "token": ["token-xx"]"#, "device.invalid"),
        (#""client_device_id": "x", "token": "token-xx", "name": {"de": "Telefon"}"#, "device.invalid"),
        (#""token": "token-xx""#, "device.invalid"),
        (#""client_device_id": "x", "token": "token-xx", "principal_id": "anna smith""#, "device.invalid"),
        (#""client_device_id": "x", "token": "token-xx", "kind": "toaster""#, "device.invalid"),
        (#""client_device_id": "x", "token": "token-xx", "registered_at": "2026-02-30 10:00Z""#, "device.invalid"),
        (#""client_device_id": "x", "token": "token-xx", "registered_at": "yesterday""#, "device.invalid"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `Bad rows are named by line and code, and good ones kept or not, as the caller says`(
        server: DatabaseServer
    ) async throws {
        try await Outbox.on(server) { outbox in
            for (members, code) in Self.faults {
                let bad = Self.row(members + #", "line": 17"#)
                let fault = #"[{"code": "\#(code)", "line": 17}]"#
                #expect(
                    try await outbox.texts(Self.call(Self.phone, bad, allOrNothing: true)) == ["0 0 0 0 1 \(fault)"],
                    "\(members)")
                #expect(try await outbox.texts(Self.tokens) == [], "\(members)")
            }
            let bad = Self.row(#""client_device_id": "x", "token": "a b""#)
            #expect(
                try await outbox.texts(Self.call(bad, Self.phone, bad, Self.tablet)) == [
                    #"2 0 0 0 2 [{"code": "device.token", "line": 1}, {"code": "device.token", "line": 3}]"#
                ])
            for rows in ["NULL", "'{}'", "'[1]'", "'[{}, null]'", "to_jsonb(array_fill('{}'::jsonb, '{100001}'))"] {
                #expect(await outbox.admin.refusal("SELECT postbell.devices_import(\(rows))") == "PB105", "\(rows)")
            }
            try await outbox.run("UPDATE postbell.settings SET value = 'apns' WHERE name = 'providers'")
            #expect(
                try await outbox.texts(Self.call(Self.phone))
                    == [#"0 0 0 0 1 [{"code": "device.provider", "line": 1}]"#])
        }
    }

    /// As one registration after the other: the last counts, and the others are told.
    @Test(arguments: DatabaseServer.allCases)
    func `Of rows about the same device, token or installation the last counts`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let rows = [
                Self.row(#""client_device_id": "phone", "token": "token-old""#),
                Self.row(#""client_device_id": "phone", "token": "token-phone", "device_ref": "d""#),
                Self.row(#""client_device_id": "phone-2", "token": "token-shared", "device_ref": "d""#),
                Self.row(
                    #""client_device_id": "of-berta", "token": "token-shared", "#
                        + #""principal_id": "berta", "device_ref": "d""#),
                Self.row(#""client_device_id": "phone-3", "token": "token-33", "device_ref": "d", "app": "app.three""#),
            ]
            let told = (1...3).map { #"{"code": "device.duplicate", "line": \#($0)}"# }.joined(separator: ", ")
            let answer = try await outbox.value(Self.call(rows[0], rows[1], rows[2], rows[3], rows[4]))
            #expect(answer == "2 0 0 0 3 [\(told)]")
            #expect(
                try await outbox.texts(Self.tokens) == [
                    "default berta of-berta active token-shared", "default anna phone-3 active token-33",
                ])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `An import takes tokens over as a registration does, and swaps them`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.run(
                """
                SET postbell.tenant_id = 'other';
                SELECT postbell.device_register('eve', 'foreign', 'fcm', 'app.two', 'token-phone');
                RESET postbell.tenant_id;
                """)
            let old = Self.row(#""client_device_id": "old", "token": "token-old", "device_ref": "d""#)
            #expect(try await outbox.texts(Self.call(Self.phone, old)) == ["2 0 0 0 0"], "as where nobody has it")
            let swapped = [
                Self.row(#""client_device_id": "phone", "token": "token-old""#),
                Self.row(#""client_device_id": "old", "token": "token-phone""#),
            ]
            #expect(try await outbox.texts(Self.call(swapped[0], swapped[1])) == ["0 2 0 0 0"])
            let new = Self.row(#""client_device_id": "new", "token": "token-new", "device_ref": "d""#)
            #expect(try await outbox.texts(Self.call(new)) == ["1 0 0 0 0"])
            #expect(
                try await outbox.texts(Self.tokens) == [
                    "other eve foreign active", "default anna phone active token-old", "default anna old disabled",
                    "default anna new active token-new",
                ])
            #expect(
                try await outbox.texts(Self.events).filter { $0.contains("invalidated") }.sorted() == [
                    #"default device.push_token_invalidated old {"reason": "replaced"}"#,
                    #"default device.push_token_invalidated old {"reason": "token_moved"}"#,
                    #"default device.push_token_invalidated phone {"reason": "token_moved"}"#,
                    #"other device.push_token_invalidated foreign {"reason": "token_moved"}"#,
                ])
        }
    }

    /// What happens to the phone after its first import, and what a repeated one makes of it. A row without a time is
    /// older than everything that was heard from the device itself.
    static let later: [(made: String, answer: String)] = [
        ("SELECT postbell.device_register('anna', 'phone', 'fcm', 'app.two', 'token-new')", "0 0 0 1 0"),
        ("SELECT postbell.device_register('anna', 'phone', 'fcm', 'app.two', 'token-phone')", "0 0 1 0 0"),
        ("SELECT postbell.device_register('berta', 'phone', 'fcm', 'app.two', 'token-phone')", "0 0 0 1 0"),
        ("SELECT postbell.device_revoke(principal_id => 'anna', reason => 'logout')", "0 0 0 1 0"),
        (
            "SELECT postbell.device_revoke(principal_id => 'anna', reason => 'erased')",
            #"0 0 0 0 1 [{"code": "device.revoked", "line": 1}]"#
        ),
        ("SELECT postbell.device_delete(id) FROM postbell.devices", "1 0 0 0 0"),
        ("UPDATE postbell.devices SET status = 'pending'", "0 0 1 0 0"),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `What was heard from a device since is kept`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for (made, answer) in Self.later {
                try await outbox.run("BEGIN; \(Self.call(Self.phone)); \(made)")
                let devices = try await outbox.texts(Self.tokens)
                #expect(try await outbox.value(Self.call(Self.phone)) == answer, "\(made)")
                if !answer.hasPrefix("1") { #expect(try await outbox.texts(Self.tokens) == devices, "\(made)") }
                // With a later time of its own the row counts again, but for what was revoked for good.
                let dated = Self.row(
                    #""client_device_id": "phone", "token": "token-phone", "registered_at": "9999-01-01T00:00:00Z""#)
                let isErased = answer.hasSuffix("]")
                #expect(try await outbox.value(Self.call(dated)) == (isErased ? answer : "0 1 0 0 0"), "\(made)")
                #expect(
                    try await outbox.value(
                        "SELECT count(*) FROM postbell.devices WHERE principal_id = 'anna' AND token = 'token-phone'")
                        == (isErased ? "0" : "1"), "\(made)")
                try await outbox.run("ROLLBACK")
            }
        }
    }

    /// A provider tells since when a token is dead: before the import, of which it knows nothing.
    @Test(arguments: DatabaseServer.allCases)
    func `A token that died before its import is cleared by the first answer`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let dated = Self.row(
                #""client_device_id": "new", "token": "token-new", "registered_at": "2126-01-01T00:00:00Z""#)
            try await outbox.run(Self.call(Self.phone, dated))
            try await outbox.enqueue("a")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed(route: 2)
            try await worker.note(.unregistered, of: batch)
            let before = batch.claimedAt + .seconds(-86_400)
            _ = try await worker.apply(batch.effect(.tokenInvalid, asOf: before))
            #expect(
                try await outbox.texts(Self.tokens)
                    == ["default anna phone disabled", "default anna new active token-new"])
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `Imported devices join what waits for a first device`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let later = "not_before => now() + interval '1 h'"
            try await outbox.enqueue("a", more: later)
            try await outbox.enqueue("b", to: "berta", more: later)
            try await outbox.run(Self.call(Self.phone, Self.tablet))
            #expect(
                try await outbox.texts(
                    "SELECT o.dedupe_key || ' ' || q.route_no FROM postbell.queue q "
                        + "JOIN postbell.outbox o ON o.id = q.notification_id ORDER BY 1") == ["a 2", "b 0"])
        }
    }

    /// An import locks no tokens. Whoever registers one of its tokens elsewhere waits for its end, and the other way
    /// round; then the later of the two has the token, and neither sees an error.
    @Test(arguments: DatabaseServer.allCases)
    func `An import and a registration of one token do not fail each other`(server: DatabaseServer) async throws {
        let registration = "SELECT postbell.device_register('eve', 'x', 'fcm', 'app.two', 'token-phone')"
        for importsFirst in [true, false] {
            try await Outbox.on(server) { outbox in
                let (mine, other) = (try await outbox.database.connect(), try await outbox.database.connect())
                try await other.execute("SET postbell.tenant_id = 'other'")
                let (first, second) = importsFirst ? (mine, other) : (other, mine)
                let calls =
                    importsFirst ? [Self.call(Self.phone), registration] : [registration, Self.call(Self.phone)]
                try await first.execute("BEGIN; \(calls[0])")
                async let refused = second.refusal(calls[1])
                let blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while try await outbox.value(blocked + " AND datname = current_database()") != "1" {}
                try await first.execute("COMMIT")
                let refusal = await refused
                #expect(refusal == nil)
                let owner = try await outbox.texts("SELECT principal_id FROM postbell.devices WHERE token IS NOT NULL")
                #expect(owner == [importsFirst ? "eve" : "anna"])
                await mine.close()
                await other.close()
            }
        }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `An import reads of the registry what its rows are about`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for _ in 1...8 { try await outbox.run(Self.call(Self.phone)) }
            let other = try await outbox.database.connect()
            try await Outbox(database: outbox.database, admin: other).importDevices(count: 3000)
            await other.close()
            let third = Self.row(#""client_device_id": "device-0007", "token": "token-new""#)
            let read = try await outbox.reading(of: "devices") {
                try await outbox.run(Self.call(Self.phone, Self.tablet, third))
            }
            for (table, read) in read { #expect(read.walked == 0 && read.fetched < 100, "\(table) \(read)") }
        }
    }
}
