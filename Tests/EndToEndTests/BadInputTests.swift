import FakeProviders
import Foundation
import Postgres
import Support
import Testing

/// What producers, devices and surroundings get wrong: said clearly, and nothing is lost or given away.
@Suite(.serialized) struct BadInputTests {
    // MARK: The database

    @Test func aWorkerWaitsForADatabaseThatComesLaterAndThenBegins() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "k1")
            let server = try DatabaseForwarder(to: stage.database.server.connectionString())
            let worker = try stage.startWorker([
                "DATABASE_URL": "\(stage.databaseURL) host=127.0.0.1 port=\(server.port) password=hush-hush"
            ])
            try await eventually("the worker says that it waits") {
                worker.errors.contains(#"msg="waiting for the database""#)
            }
            #expect(worker.errors.contains("Connection refused"))
            #expect(await stage.apns.requests.isEmpty)
            server.open()
            try await stage.waitFor("k1", "dispatched")
            #expect(try await worker.stop() == 0)
            #expect(!worker.errors.contains("hush-hush"))
            server.stop()
        }
    }

    // MARK: Producers

    /// Payloads as a shell's here-document hands them to psql, what the server answers with, and what it names.
    private static let payloads: [(kind: String, payload: String, state: String, message: String)] = [
        ("unheard_of", "{}", "PB001", #"notification.unknown_kind: kind "unheard_of" is not in the catalog"#),
        (
            "approval_requested", #"{"approval_id": "\#(id)", "hush": "hush-hush"}"#, "PB002",
            #"notification.payload_key: kind "approval_requested", key "hush""#
        ),
        (
            "approval_requested", #"{"tool_name": "hush-hush"}"#, "PB002",
            #"notification.payload_key: kind "approval_requested", key "approval_id""#
        ),
        (
            "approval_requested", #"{"approval_id": "hush-hush"}"#, "PB003",
            #"notification.payload_type: kind "approval_requested", key "approval_id""#
        ),
        (
            "approval_requested", #"{"approval_id": "\#(id)", "tool_name": {"hush-hush": 1}}"#, "PB003",
            #"notification.payload_type: kind "approval_requested", key "tool_name""#
        ),
        (
            "approval_requested", #"{"approval_id": "hush-hush""#, "PB007",
            #"notification.payload_syntax: kind "approval_requested""#
        ),
        (
            "approval_requested", #"{"tool_name": ""# + String(repeating: "hush-hush", count: 2000) + #""}"#, "PB004",
            #"notification.too_large: kind "approval_requested""#
        ),
    ]
    private static let id = "7f3c0000-0000-4000-8000-000000000000"

    @Test(arguments: payloads)
    func aProducersMistakeIsNamedWithoutItsValueAndNothingIsWritten(
        bad: (kind: String, payload: String, state: String, message: String)
    ) async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.register("ada", token: "0a0b0c0d")
            // A good row goes with the bad one, in one statement, after a change of the producer's own.
            let script = """
                \\set VERBOSITY verbose
                CREATE TABLE public.orders (id int);
                BEGIN;
                INSERT INTO public.orders VALUES (1);
                INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload) VALUES
                    ('ada', 'approval_requested', 'good', '{"approval_id": "\(Self.id)"}'),
                    ('ada', '\(bad.kind)', 'bad', '\(bad.payload)');
                COMMIT;
                """
            let run = try await stage.psql(script)
            #expect(run.status != 0)
            #expect(run.errors.contains("ERROR:  \(bad.state): \(bad.message)"), "\(run.errors)")
            #expect(!(run.output + run.errors).replacing(script, with: "").contains("hush-hush"), "\(run.errors)")
            for table in ["public.orders", "postbell.outbox", "postbell.queue", "postbell.settlements"] {
                #expect(try await stage.texts("SELECT count(*) FROM \(table)") == ["0"], "\(table)")
            }
        }
    }

    /// `define_kind` would have refused it. It fails where it cannot be sent, once and by name, and nobody else does.
    @Test func aKindThatCameAroundItsFunctionFailsAloneAndIsNamed() async throws {
        try await Stage.on(.postgres15) { stage in
            try await stage.run(
                """
                SELECT postbell.define_kind('refresh', 'template', push_type => 'background', priority => 5::smallint);
                UPDATE postbell.kinds SET priority = 10 WHERE name = 'refresh'
                """)
            for name in ["ada", "bob"] { try await stage.register(name, token: name == "ada" ? "0a" : "0b") }
            let worker = try stage.startWorker()
            try await stage.run(
                "INSERT INTO postbell.outbox (principal_id, kind, dedupe_key) VALUES ('ada', 'refresh', 'k1')")
            try await stage.enqueue("bob", key: "k2")
            try await stage.waitFor("k1", "failed")
            try await stage.waitFor("k2", "dispatched")
            #expect(try await stage.outcomes("k1") == ["rejected"])
            let reasons = "SELECT DISTINCT provider_reason FROM postbell.ledger WHERE outcome = 'rejected'"
            #expect(try await stage.texts(reasons) == ["kind_refused"])
            #expect(await stage.apns.requests.count == 1)
            let named = worker.errors.split(separator: "\n").filter { $0.contains("kind cannot be sent") }
            #expect(named.count == 2, "once per lane: \(named)")
            #expect(
                named.allSatisfy {
                    $0.contains("kind=refresh") && $0.contains("push type background goes with priority 5")
                })
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["0"])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// A newer program declared it, or somebody's hand: what it says cannot be read here. It waits, and alone.
    @Test func aKindThatThisWorkerCannotReadHoldsItsOwnRowsAndIsNamed() async throws {
        try await Stage.on(.postgres15) { stage in
            for name in ["type", "content", "presentation", "retry", "keys"] {
                try await stage.run(
                    "SELECT postbell.define_kind('of_\(name)', 'template', content => '{\"title\": \"x\"}')")
            }
            let strange = """
                UPDATE postbell.kinds SET payload_keys = '{"k": {"type": "colour"}}' WHERE name = 'of_type';
                UPDATE postbell.kinds SET content = '{"title": {"spoken": true}}' WHERE name = 'of_content';
                UPDATE postbell.kinds SET presentation = 'hologram' WHERE name = 'of_presentation';
                UPDATE postbell.kinds SET retry = 'whenever' WHERE name = 'of_retry';
                UPDATE postbell.kinds SET payload_keys = '7' WHERE name = 'of_keys'
                """
            for name in ["ada", "bob"] { try await stage.register(name, token: name == "ada" ? "0a" : "0b") }
            try await stage.run(
                """
                INSERT INTO postbell.outbox (principal_id, kind, dedupe_key)
                SELECT 'ada', k.name, k.name FROM postbell.kinds k WHERE k.name LIKE 'of\\_%';
                \(strange)
                """)
            try await stage.enqueue("bob", key: "good")
            let worker = try stage.startWorker()
            try await stage.waitFor("good", "dispatched")
            let held = "SELECT count(*) FROM postbell.queue WHERE due_at > now() + interval '30 s'"
            try await eventually("the others went back for a while") { try await stage.texts(held) == ["5"] }
            #expect(await stage.apns.requests.count == 1)
            let named = worker.errors.split(separator: "\n").filter { $0.contains("kind cannot be read") }
            #expect(named.count == 5 && Set(named.map { $0.contains("level=error") }) == [true], "\(named)")
            for cause in ["the type of a payload key", "its retry policy", "its presentation or content"] {
                #expect(named.contains { $0.contains(cause) }, "\(cause): \(named)")
            }
            // Declared as it should be, it is sent; nothing was spent meanwhile.
            try await stage.run(
                """
                UPDATE postbell.kinds SET content = '{"title": "y"}' WHERE name = 'of_content';
                UPDATE postbell.queue SET due_at = now()
                """)
            try await eventually("what was mended is sent") {
                try await stage.run("UPDATE postbell.queue SET due_at = now() WHERE due_at > now()")
                return try await stage.status("of_content") == "dispatched"
            }
            #expect(try await stage.texts("SELECT DISTINCT outcome || attempt FROM postbell.ledger") == ["delivered1"])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    // MARK: Devices

    private static let tokens = [
        "", "zz", "0a0b", "0a0b0c0d0e0f0a0b0", "0a0b0c0d0e0f0a0b0c 0", "0a0b0c0d0e0f0a0b0c0d\r\nx: y",
        "../../3/device/0a0b0c0d0e0f", "0a0b0c0d0e0f0a0b%2f", "0a0b0c0d0e0f0a0bé0", "０a0b0c0d0e0f0a0b",
        String(repeating: "0a", count: 600),
    ]

    @Test(arguments: tokens)
    func anOddTokenIsRefusedWhenItIsRegistered(token: String) async throws {
        try await Stage.on(.postgres15) { stage in
            let call = """
                SELECT postbell.device_register('ada', 'phone', 'apns', '\(Stage.topic)', '\(token)',
                    environment => 'sandbox')
                """
            do {
                try await stage.run(call)
                Issue.record("accepted")
            } catch let error as PostgresError {
                #expect(error.sqlState?.code == "PB102", "\(error)")
                #expect(error.message == "device.token: the push token is not one of this provider")
            }
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices") == ["0"])
        }
    }

    /// One that got past the registry: it ends, without a request, and its neighbours do not notice.
    @Test func anOddTokenInTheTableEndsAsUnregisteredAndItsNeighboursAreDelivered() async throws {
        try await Stage.on(.postgres15) { stage in
            // Not those that are only too short or too long: their form is right, and Apple has to judge them.
            let odd = Self.tokens.filter { token in
                !token.isEmpty && (token.count % 2 == 1 || !token.allSatisfy { $0.isASCII && $0.isHexDigit })
            }
            for (number, token) in odd.enumerated() {
                try await stage.register("odd\(number)", token: "0c\(String(format: "%06d", number))")
                try await stage.register("even\(number)", token: "0a\(String(format: "%06d", number))")
                try await stage.run(
                    "UPDATE postbell.devices SET token = '\(token)' WHERE principal_id = 'odd\(number)'")
            }
            for number in odd.indices {
                try await stage.enqueue("odd\(number)", key: "odd\(number)")
                try await stage.enqueue("even\(number)", key: "even\(number)")
            }
            let worker = try stage.startWorker()
            try await eventually("all is settled") {
                try await stage.texts("SELECT count(*) FROM postbell.notifications WHERE status <> 'dispatched'") == [
                    "0"
                ]
            }
            for number in odd.indices {
                #expect(try await stage.outcomes("odd\(number)") == ["unregistered"])
                #expect(try await stage.outcomes("even\(number)") == ["delivered"])
            }
            let reasons = "SELECT DISTINCT provider_reason FROM postbell.ledger WHERE outcome = 'unregistered'"
            #expect(try await stage.texts(reasons) == ["token_malformed"])
            #expect(await stage.apns.requests.count == odd.count, "no request for a malformed token")
            try await eventually("the malformed tokens are gone") {
                try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["\(odd.count)"]
            }
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
            let ledger = try await stage.texts("SELECT to_jsonb(l) FROM postbell.ledger l").joined()
            for token in odd where token.count > 8 {
                #expect(!worker.errors.contains(token) && !ledger.contains(token))
            }
        }
    }
}
