import OutboxCore
import Postgres
import Support
import Testing

@testable import OutboxPostgres

/// Codes of publishers and the mapping that apps render them from.
@Suite(.timeLimit(.minutes(5)))
struct CodeTests {
    private static let kind = #"""
        SELECT postbell.define_kind('plugin', 'code', '{"code": "code(acme)!", "n": "int?"}',
            '{"title": "App", "data": {"c": "{code}", "mv": "{$mapping}"}}', mutable_content => true)
        """#

    /// Two logins with namespaces, and one without.
    private static func publishers(_ outbox: Outbox, _ body: ([String]) async throws -> Void) async throws {
        let roles = ["a", "b", "c"].map { "test_\($0)_\(outbox.database.name)" }
        for role in roles {
            try await outbox.run("CREATE ROLE \(role) LOGIN; GRANT postbell_producer TO \(role)")
        }
        try await outbox.run(
            """
            SELECT postbell.assign_namespace('\(roles[0])', 'acme/mail');
            SELECT postbell.assign_namespace('\(roles[1])', 'acme/cal')
            """)
        try await body(roles)
        for role in roles { try await outbox.run("DROP OWNED BY \(role); DROP ROLE \(role)") }
    }

    private static func connect(_ outbox: Outbox, _ server: DatabaseServer, as login: String) async throws
        -> PostgresConnection
    {
        try await PostgresConnection.connect(
            PostgresConfiguration("\(server.connectionString()) dbname=\(outbox.database.name) user=\(login)"),
            on: DatabaseServer.loop)
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A namespace follows from who installs, whatever the codes say`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.publishers(outbox) { roles in
                let mail = try await Self.connect(outbox, server, as: roles[0])
                let calendar = try await Self.connect(outbox, server, as: roles[1])
                let nobody = try await Self.connect(outbox, server, as: roles[2])
                #expect(
                    try await mail.texts(
                        #"SELECT postbell.install_codes('{"1": {"title": "mail"}, "2": {"title": "x"}}')"#) == ["2"])
                #expect(try await calendar.texts(#"SELECT postbell.install_codes('{"1": {"title": "cal"}}')"#) == ["1"])
                for key in ["acme/mail:1", "mail:1", "a/b", "", "a b"] {
                    let call = "SELECT postbell.install_codes('{\"\(key)\": {\"title\": \"x\"}}')"
                    #expect(await calendar.refusal(call) == "PB401", "\(key)")
                }
                for entry in ["7", "{}", #"{"title": 7}"#, #"{"title": ""}"#, #"{"title": "x", "namespace": "y"}"#] {
                    let call = "SELECT postbell.install_codes('{\"k\": \(entry)}')"
                    #expect(await calendar.refusal(call) == "PB401", "\(entry)")
                }
                for call in ["SELECT postbell.install_codes('{}')", "SELECT postbell.uninstall_codes()"] {
                    #expect(await nobody.refusal(call) == "PB402", "\(call)")
                }
                #expect(await nobody.refusal("SELECT postbell.assign_namespace(current_user, 'acme/mail')") == "42501")
                #expect(await nobody.refusal("INSERT INTO postbell.codes VALUES ('acme/mail', 'x', 'y')") == "42501")
                // A temporary table of the caller's, and its own search path, change nothing.
                try await nobody.execute(
                    """
                    CREATE TEMP TABLE namespaces (role_name name, namespace text);
                    INSERT INTO namespaces VALUES (current_user, 'acme/mail'); SET search_path = pg_temp, postbell
                    """)
                #expect(await nobody.refusal("SELECT postbell.uninstall_codes()") == "PB402")
                // A back end that installs for its plugins does so in their role.
                try await outbox.run(
                    "SET ROLE \(roles[0]); SELECT postbell.install_codes('{\"9\": {\"title\": \"z\"}}'); RESET ROLE")
                let entries = "SELECT string_agg(k, ' ') FROM json_object_keys(postbell.mapping() -> 'entries') k"
                #expect(try await mail.texts(entries) == ["acme/cal:1 acme/mail:9"])
                #expect(try await calendar.texts("SELECT postbell.uninstall_codes()") == ["1"])
                #expect(try await mail.texts(entries) == ["acme/mail:9"])
                #expect(
                    await outbox.admin.refusal("SELECT postbell.assign_namespace('\(roles[2])', 'acme/mail')")
                        == "PB401")
                try await outbox.run("SELECT postbell.assign_namespace('\(roles[0])', NULL)")
                #expect(try await outbox.value("SELECT count(*) FROM postbell.codes") == "0")
                #expect(await mail.refusal("SELECT postbell.install_codes('{}')") == "PB402")
                for connection in [mail, calendar, nobody] { await connection.close() }
            }
        }
    }

    @Test func `The version is the same wherever the same codes are installed, and another when one changes`()
        async throws
    {
        var versions: [String] = []
        for (server, isReversed) in zip(DatabaseServer.allCases + DatabaseServer.allCases, [false, true, true, false]) {
            try await Outbox.on(server) { outbox in
                try await Self.publishers(outbox) { roles in
                    let keys = ["a", "B", "a.1", "a-1", "_", "10", "9"]
                    for role in isReversed ? roles[..<2].reversed() : Array(roles[..<2]) {
                        for count in isReversed ? [keys.count] : Array(1...keys.count) {
                            let entries = keys[..<count].map {
                                #""\#($0)": {"route": "r/\#($0)", "title": "Ü \#($0)"}"#
                            }
                            let list = (isReversed ? entries.reversed() : entries).joined(separator: ",")
                            try await outbox.run(
                                "SET ROLE \(role); SELECT postbell.install_codes('{\(list)}'); RESET ROLE")
                        }
                    }
                    let version = try await outbox.value("SELECT postbell.mapping() ->> 'version'")
                    #expect(try await outbox.value("SELECT postbell.mapping_version()") == version)
                    versions.append(version)
                    for change in [
                        #"{"a": {"title": "Ü a"}}"#, #"{"a": {"title": "Ü a", "route": "r/a"}}"#, "{}",
                    ] {
                        try await outbox.run(
                            "SET ROLE \(roles[0]); SELECT postbell.install_codes('\(change)'); RESET ROLE")
                        #expect(try await outbox.value("SELECT postbell.mapping_version()") != version)
                    }
                    try await outbox.run(
                        "SELECT postbell.assign_namespace('\(roles[0])', NULL);"
                            + "SELECT postbell.assign_namespace('\(roles[1])', NULL)"
                    )
                    // Of nothing: the SHA-256 of an empty object.
                    #expect(try await outbox.value("SELECT postbell.mapping_version()") == "44136fa355b3678a")
                }
            }
        }
        #expect(versions.count == 4 && Set(versions).count == 1, "\(versions)")
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A code is checked by form and namespace, never against what is installed`(server: DatabaseServer) async throws
    {
        try await Outbox.on(server) { outbox in
            try await outbox.run(Self.kind)
            try await outbox.run(
                Self.kind.replacing("'plugin'", with: "'one'").replacing("(acme)", with: "(acme/mail)"))
            let rows: [(code: String, plugin: Bool, one: Bool)] = [
                ("acme/mail:1", true, true), ("acme/cal:never.installed", true, false), ("acme:core", true, false),
                ("acme/mailer:1", true, false), ("acmeco/mail:1", false, false), ("other/mail:1", false, false),
                ("acme/mail", false, false), ("acme/mail:a b", false, false), ("acme/mail/x:1", false, false),
            ]
            for (index, row) in rows.enumerated() {
                for (kind, isTaken) in [("plugin", row.plugin), ("one", row.one)] {
                    let call =
                        "SELECT postbell.enqueue('\(kind)', 'anna', '\(kind)\(index)', '{\"code\": \"\(row.code)\"}')"
                    #expect(await outbox.admin.refusal(call) == (isTaken ? nil : "PB003"), "\(kind) \(row.code)")
                }
            }
        }
    }

    /// Kind and codes that are declared together are read together: no load sees one without the other.
    @Test(arguments: DatabaseServer.allCases)
    func `A worker reads the catalog and the mapping in one snapshot`(server: DatabaseServer) async throws {
        try await Outbox.on(server) { outbox in
            try await Self.publishers(outbox) { roles in
                let writer = try await outbox.database.connect()
                let worker = try await outbox.worker()
                func declare(_ number: Int) async throws {
                    // One statement list is one transaction.
                    try await writer.execute(
                        """
                        BEGIN;
                        SET LOCAL ROLE \(roles[0]);
                        SELECT postbell.install_codes('{"k": {"title": "\(number)"}}');
                        RESET ROLE;
                        SELECT postbell.define_kind('plugin', 'code', '{"code": "code!"}', jsonb_build_object(
                            'title', 'App', 'data', jsonb_build_object(
                                'c', '{code}', 'mv', '{$mapping}', 'is', postbell.mapping_version())),
                            mutable_content => true);
                        COMMIT
                        """)
                }
                func declareMany(_ numbers: ClosedRange<Int>) async throws {
                    for number in numbers { try await declare(number) }
                }
                func load() async throws -> String {
                    let kinds = try CatalogAnswer.kinds(
                        await worker.query(PostgresCommand(CatalogStatement.kinds, PostgresParameters())))
                    let kind = try #require(kinds.last { $0.name == "plugin" })
                    let declared = kind.data?.first { String(decoding: $0.name, as: UTF8.self) == "is" }
                    let version = String(decoding: kind.mappingVersion, as: UTF8.self)
                    #expect(declared?.value == .constant(Array("\"\(version)\"".utf8)))
                    return version
                }
                try await declare(0)
                var seen: Set<String> = [try await load()]
                async let written: Void = declareMany(1...40)
                for _ in 1...200 { seen.insert(try await load()) }
                try await written
                seen.insert(try await load())
                #expect(seen.count > 1)
                await writer.close()
            }
        }
    }
}
