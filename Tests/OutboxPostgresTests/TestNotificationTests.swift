import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// `device_test`: the built-in kind, whom it is sent to, who may ask for it, and which device cannot be tested.
@Suite(.timeLimit(.minutes(5)))
struct TestNotificationTests {
    private static func device(_ client: String) -> String {
        "(SELECT id FROM postbell.devices WHERE client_device_id = '\(client)')"
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A test goes to the one device, once per key`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await outbox.device()
            try await outbox.device("tablet")
            let call = "SELECT postbell.device_test(\(Self.device("tablet")), 'k')"
            let made = try await outbox.value(call)
            #expect(try await outbox.value(call) == made)
            #expect(
                try await outbox.value(
                    """
                    SELECT concat_ws(' ', kind, dedupe_key = 'device.test:' || device_id || ':k',
                        expires_at - created_at)
                    FROM postbell.outbox
                    """) == "test t 00:10:00")
            let worker = try await outbox.worker()
            let batch = try await worker.claimed()
            #expect(batch.devices == [[2]])
            _ = try await worker.settle(batch.flush(1))
            #expect(try await outbox.value(call) == made, "also when it is over")
            #expect(try await outbox.value("SELECT postbell.device_test(\(Self.device("tablet")))") != made)
        }
    }

    /// A device in each of its states, and the code that its test is refused with.
    static let untestable: [(client: String, made: String, state: String)] = [
        ("revoked", "SELECT postbell.device_revoke(\(device("revoked")), reason => 'logout')", "PB106"),
        ("moved", Outbox.registration("moved", of: "berta").replacing("berta moved", with: "anna moved"), "PB110"),
        (
            "dead", "UPDATE postbell.devices SET token = NULL, status = 'disabled' WHERE client_device_id = 'dead'",
            "PB110"
        ),
    ]

    @Test(arguments: DatabaseServer.allCases)
    func `A device that nothing can be sent to is refused by name`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            for (client, made, state) in Self.untestable {
                try await outbox.device(client)
                try await outbox.run(made)
                let call = "SELECT postbell.device_test(id) FROM postbell.devices WHERE principal_id = 'anna' AND "
                #expect(await outbox.admin.refusal(call + "client_device_id = '\(client)'") == state, "\(client)")
            }
            try await outbox.device("good")
            for key in ["''", "'with a space'", "repeat('x', 101)"] {
                let call = "SELECT postbell.device_test(\(Self.device("good")), \(key))"
                #expect(await outbox.admin.refusal(call) == "PB105", "\(key)")
            }
            #expect(try await outbox.value("SELECT count(*) FROM postbell.outbox") == "0")
            try await outbox.run("UPDATE postbell.settings SET value = 'off' WHERE name = 'enqueue'")
            #expect(try await outbox.texts("SELECT postbell.device_test(\(Self.device("good")))") == ["null"])
        }
    }

    /// The kind is limited to registrars; a login that is confined to a tenant tests that tenant's devices.
    @Test(arguments: DatabaseServer.allCases)
    func `A registrar may test and a producer may not`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            let logins = ["registrar", "producer"].map { "test_\($0)_\(outbox.database.name)" }
            for (login, role) in zip(logins, ["registrar", "producer"]) {
                try await outbox.run(
                    """
                    CREATE ROLE \(login) LOGIN; GRANT postbell_\(role) TO \(login);
                    INSERT INTO postbell.role_tenants VALUES ('\(login)', 'mine')
                    """)
            }
            func connect(_ login: String) async throws -> PostgresConnection {
                try await PostgresConnection.connect(
                    PostgresConfiguration(
                        "\(server.connectionString()) dbname=\(outbox.database.name) user=\(login)"),
                    on: DatabaseServer.loop)
            }
            try await outbox.device(tenant: "mine")
            try await outbox.device("tablet")
            let (mine, foreign) = (
                try await outbox.value("SELECT \(Self.device("phone"))"),
                try await outbox.value("SELECT \(Self.device("tablet"))")
            )
            let registrar = try await connect(logins[0])
            #expect(await registrar.refusal("SELECT postbell.device_test('\(mine)')") == "PB005", "no tenant named")
            try await registrar.execute("SET postbell.tenant_id = 'mine'")
            #expect(await registrar.refusal("SELECT postbell.device_test('\(foreign)')") == "PB101")
            #expect(try await registrar.texts("SELECT postbell.device_test('\(mine)') IS NOT NULL") == ["t"])
            #expect(try await outbox.texts("SELECT tenant_id || ' ' || kind FROM postbell.outbox") == ["mine test"])
            let producer = try await connect(logins[1])
            try await producer.execute("SET postbell.tenant_id = 'mine'")
            #expect(await producer.refusal("SELECT postbell.device_test('\(mine)')") == "42501")
            #expect(await producer.refusal("SELECT postbell.enqueue('test', 'anna', 'a')") == "PB005")
            // A catalog that declares the kind anew says who may: here it is nobody who registers devices.
            try await outbox.run(
                """
                SELECT postbell.define_kind('test', 'template', content => '{"title": "Hello"}',
                    producers => '{postbell_producer}')
                """)
            #expect(await registrar.refusal("SELECT postbell.device_test('\(mine)')") == "PB005")
            await registrar.close()
            await producer.close()
            for login in logins { try await outbox.run("DROP OWNED BY \(login); DROP ROLE \(login)") }
        }
    }
}
