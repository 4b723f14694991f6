import Foundation
import OutboxPostgres
import Support
import Testing

@testable import Operations

/// `postbell migrate`, on real servers.
@Suite(.serialized) struct MigrateTests {
    @Test(arguments: DatabaseServer.allCases) func aDatabaseIsBroughtUpToDateOnce(server: DatabaseServer) async throws {
        try await TemporaryDatabase.empty(on: server) { database in
            let before = try database.run("migrate", "--status")
            #expect(before.status == 1)
            #expect(before.output.split(separator: "\n").count == Migration.all.count + 1)
            #expect(before.output.split(separator: "\n").dropFirst().allSatisfy { $0.contains(" pending ") })

            let plan = Migration.all.map { "would apply migration \($0.version) (\($0.name))\n" }.joined()
            #expect(try database.run("migrate", "--dry-run").output == plan)
            #expect(try database.run("migrate", "--status").status == 1)

            let applied = try database.run("migrate")
            #expect(applied.status == 0)
            #expect(applied.errors.isEmpty)
            #expect(applied.output == plan.replacingOccurrences(of: "would apply", with: "applied"))

            let again = try database.run("migrate")
            #expect(again.status == 0)
            #expect(again.output == "nothing to do: the schema is at revision \(SchemaRevision.expected)\n")
            #expect(try database.run("migrate", "--status").status == 0)
        }
    }

    @Test func jsonIsForPrograms() async throws {
        try await TemporaryDatabase.empty(on: .postgres15) { database in
            func object(_ arguments: String...) throws -> Any {
                let result = try Program.run(arguments, environment: ["DATABASE_URL": try database.connectionString])
                return try JSONSerialization.jsonObject(with: Data(result.output.utf8))
            }
            let plan = try object("migrate", "--dry-run", "--json") as? [String: Any]
            #expect((plan?["pending"] as? [Any])?.count == Migration.all.count)
            let applied = try object("migrate", "--json") as? [String: Any]
            #expect((applied?["applied"] as? [Any])?.count == Migration.all.count)
            #expect(applied?["revision"] as? Int == SchemaRevision.expected)
            let status = try object("migrate", "--status", "--json") as? [[String: Any]]
            #expect(status?.map { $0["state"] as? String } == Migration.all.map { _ in "applied" })
        }
    }

    @Test func aForeignSchemaIsLeftAlone() async throws {
        try await TemporaryDatabase.empty(on: .postgres15) { database in
            #expect(try database.run("migrate").status == 0)
            try await database.execute(
                "INSERT INTO postbell.schema_migrations (version, name, checksum) VALUES (9999, 'later', 'x')")
            for arguments in [[], ["--status"], ["--dry-run"]] {
                let result = try Program.run(
                    ["migrate"] + arguments, environment: ["DATABASE_URL": try database.connectionString])
                #expect(result.status == 5)
                #expect(result.lines.count == 1)
                #expect(result.errors.contains("the database has migration 9999, which this program does not know"))
            }
            try await database.execute(
                """
                DELETE FROM postbell.schema_migrations WHERE version = 9999;
                UPDATE postbell.schema_migrations SET checksum = 'other' WHERE version = 1
                """)
            let changed = try database.run("migrate")
            #expect(changed.status == 5)
            #expect(changed.lines.count == 1)
            #expect(changed.errors.contains("was applied from another file"))
        }
    }

    @Test func aRoleWithoutTheRightIsToldWhichOneItTakes() async throws {
        try await TemporaryDatabase.empty(on: .postgres15) { database in
            let role = "nobody_\(UUID().uuidString.prefix(8).lowercased())"
            try await database.execute("CREATE ROLE \(role) LOGIN")
            let result = try database.run("migrate", settings: "user=\(role)")
            try await database.execute("DROP ROLE \(role)")
            #expect(result.status == 6)
            #expect(result.lines.count == 1)
            #expect(result.errors.contains("(SQLSTATE 42501)"))
            #expect(result.errors.contains("needs CREATE on the database"))
        }
    }

    @Test func aDatabaseThatDoesNotExistIsRefusedByItsServer() async throws {
        try await TemporaryDatabase.empty(on: .postgres15) { database in
            let result = try database.run("migrate", settings: "dbname=nowhere password=hush-hush")
            #expect(result.status == 6)
            #expect(result.lines.count == 1)
            #expect(result.errors.contains("(SQLSTATE 3D000)"))
            #expect(result.errors.contains("; create the database, or correct its name"))
            #expect(!result.errors.contains("hush-hush"))
        }
    }

    @Test(arguments: [
        (
            ["DATABASE_URL": "postgresql://u:hush-hush@127.0.0.1:1/d"], 4,
            "database host=127.0.0.1 port=1 dbname=d user=u"
        ),
        (["PGHOST": "/nowhere", "PGPASSWORD": "hush-hush"], 4, "database PGHOST=/nowhere"),
        (["DATABASE_URL": "hush-hush=1"], 3, "DATABASE_URL and libpq's variables"),
    ])
    func aDatabaseOutOfReachIsOneLine(environment: [String: String], status: Int32, place: String) throws {
        let result = try Program.run(["migrate"], environment: environment)
        #expect(result.status == status, "\(result.errors)")
        #expect(result.lines.count == 1)
        #expect(result.errors.contains("; \(place); "), "\(result.errors)")
        #expect(!result.errors.contains("hush-hush"))
    }

    @Test func statusAndDryRunExcludeEachOther() throws {
        let result = try Program.run(["migrate", "--status", "--dry-run"])
        #expect(result.status == 2)
        #expect(result.lines.count == 1)
    }
}
