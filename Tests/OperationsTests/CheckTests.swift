import Foundation
import OutboxCore
import Postgres
import Support
import Testing

@testable import Operations
@testable import OutboxPostgres

/// `postbell check`: what it finds in a database, and with which status it ends.
@Suite(.serialized) struct CheckTests {
    /// What may never be seen, wherever it was put.
    private static let secret = "hush-hush"

    @Test(arguments: DatabaseServer.allCases)
    func aSoundDatabaseIsOkInEveryLine(server: DatabaseServer) async throws {
        try await TemporaryDatabase.migrated(on: server) { database in
            try await database.execute(
                """
                SELECT postbell.define_kind('note', 'template', content => '{"title": "x"}');
                SELECT postbell.define_kind('own', 'raw', producers => '{pg_monitor}');
                """)
            try await database.withWorkerLogin { login in
                let result = try database.run("check", "--json", settings: "user=\(login)")
                let report = try CheckOutput(result)
                #expect(report.findings(.kinds).first?.hasPrefix("enabled: 2; raw,") == true, "\(result.output)")
                #expect(report.findings(.kinds).first?.hasSuffix(": own") == true)
                #expect(result.status == 0, "\(result.output)")
                #expect(report.status == 0)
                for topic in CheckTopic.allCases where topic != .credential && topic != .endpoint {
                    #expect(report.statuses(topic) == ["ok"], "\(topic): \(report.findings(topic))")
                }
                #expect(report.statuses(.credential) == ["warn"])
                #expect(report.unseen == ["endpoint"])
            }
        }
    }

    @Test func whatIsWrongIsALineWithItsRemedyAndTheMostFundamentalFailureGivesTheStatus() throws {
        let result = try Program.run(
            ["check"],
            environment: [
                "DATABASE_URL": "postgresql://u:\(Self.secret)@127.0.0.1:1/d", "POSTBELL_POLL": "5",
                "APNS_KEY_FILE": "/nowhere/\(Self.secret)\u{1B}[2J.p8", "APNS_KEY_ID": Self.secret,
            ])
        #expect(result.status == 3)
        #expect(result.errors.isEmpty)
        let lines = result.output.split(separator: "\n").map(String.init)
        #expect(lines.filter { $0.hasPrefix("fail  configuration") }.count == 4, "\(lines)")
        #expect(
            lines.contains(
                #"fail  configuration  POSTBELL_POLL "5" is a number without a unit; environment; "#
                    + "write a duration from 50ms to 1m, such as 1s"))
        #expect(
            lines.contains { $0.hasPrefix("fail  database       connect failed: ") && $0.contains("can be reached") })
        #expect(lines.last?.contains("; not looked at: ") == true)
        #expect(!result.output.contains(Self.secret))
    }

    /// With its default in the place of a refused setting, the doctor would look at something that nobody means.
    @Test(arguments: [
        ("DATABASE_URL", "not a string", [CheckTopic.database, .schema]),
        ("APNS_KEY_ID", "short", [.credential, .endpoint]),
        ("POSTBELL_PROVIDERS", "nobody", [.credential, .endpoint]), ("POSTBELL_CA_FILE", "-----BEGIN X", [.endpoint]),
        ("POSTBELL_APNS_ENDPOINT", "http://x", [.endpoint]),
    ])
    func whatARefusedSettingDecidesIsNotLookedAt(name: String, value: String, unseen: [CheckTopic]) throws {
        var environment = ["DATABASE_URL": "postgresql://u@127.0.0.1:1/d"]
        environment[name] = value
        let result = try Program.run(["check", "--json"], environment: environment)
        #expect(result.status == 3)
        let report = try CheckOutput(result)
        for topic in unseen { #expect(report.unseen.contains(topic.rawValue), "\(topic): \(report.unseen)") }
    }

    @Test func withoutTheDatabaseItEndsAsUnreachable() throws {
        let result = try Program.run(["check"], environment: ["DATABASE_URL": "postgresql://u@127.0.0.1:1/d"])
        #expect(result.status == 4)
    }

    @Test func offlineItConnectsToNothing() throws {
        let result = try Program.run(
            ["check", "--offline", "--json"], environment: ["DATABASE_URL": "postgresql://u@127.0.0.1:1/d"])
        #expect(result.status == 0)
        let report = try CheckOutput(result)
        #expect(report.unseen == [])
        #expect(Set(report.items.map(\.topic)) == ["configuration", "credential"])
    }

    @Test(arguments: [
        ("DROP SCHEMA postbell CASCADE", "the database has no schema of Postbell"),
        ("DELETE FROM postbell.schema_migrations WHERE version > 6", "the schema is at revision 6"),
        (
            "INSERT INTO postbell.schema_migrations (version, name, checksum) VALUES (9999, 'later', 'x')",
            "the schema is at revision 9999"
        ),
        ("UPDATE postbell.schema_migrations SET checksum = 'x' WHERE version = 1", "migration 1"),
    ])
    func anotherSchemaIsSaid(change: String, finding: String) async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.execute(change)
            let result = try database.run("check", "--json")
            let report = try CheckOutput(result)
            #expect(result.status == 5)
            #expect(report.statuses(.schema) == ["fail"])
            #expect(report.findings(.schema).first?.contains(finding) == true, "\(report.findings(.schema))")
            #expect(report.unseen.contains("routes"))
        }
    }

    /// A right that a worker's login lacks, or has beyond what a worker needs; `LOGIN` stands for the login.
    static let rights: [(change: String, topic: CheckTopic, status: String, finding: String, end: Int32)] = [
        (
            "REVOKE postbell_dispatcher FROM LOGIN", .rights, "fail",
            "LOGIN is no member of postbell_dispatcher and lacks", 6
        ),
        (
            "REVOKE INSERT ON postbell.deliveries FROM postbell_dispatcher", .rights, "fail",
            "LOGIN lacks INSERT ON postbell.deliveries", 6
        ),
        (
            "REVOKE UPDATE (open) ON postbell.leases FROM postbell_dispatcher", .rights, "fail",
            "LOGIN lacks UPDATE (open) ON postbell.leases", 6
        ),
        (
            "REVOKE EXECUTE ON FUNCTION postbell.wake FROM postbell_dispatcher", .rights, "fail",
            "LOGIN lacks EXECUTE ON FUNCTION postbell.wake(smallint[])", 6
        ),
        ("ALTER ROLE LOGIN SUPERUSER", .excess, "fail", "LOGIN has the attribute SUPERUSER", 1),
        ("ALTER ROLE LOGIN BYPASSRLS", .excess, "fail", "LOGIN has the attribute BYPASSRLS", 1),
        ("ALTER ROLE LOGIN CREATEROLE", .excess, "fail", "LOGIN has the attribute CREATEROLE", 1),
        ("ALTER ROLE LOGIN CREATEDB", .excess, "warn", "LOGIN has the attribute CREATEDB", 0),
        ("GRANT postbell_owner TO LOGIN", .excess, "fail", "LOGIN is a member of postbell_owner", 1),
        ("GRANT postbell_operator TO LOGIN", .excess, "fail", "LOGIN is a member of postbell_operator", 1),
        ("GRANT postbell_producer TO LOGIN", .excess, "fail", "LOGIN is a member of postbell_producer", 1),
        ("GRANT postbell_reader TO LOGIN", .excess, "warn", "LOGIN is a member of postbell_reader", 0),
        ("GRANT pg_read_all_data TO LOGIN", .excess, "fail", "LOGIN is a member of pg_read_all_data", 1),
        (
            "GRANT UPDATE (payload) ON postbell.outbox TO postbell_dispatcher", .excess, "fail",
            "LOGIN has more rights in the schema than a worker needs: UPDATE (payload) ON postbell.outbox", 1
        ),
        (
            "GRANT SELECT ON postbell.secrets TO PUBLIC", .excess, "fail",
            "LOGIN has more rights in the schema than a worker needs: SELECT ON postbell.secrets", 1
        ),
        (
            "GRANT EXECUTE ON FUNCTION postbell.supersede TO LOGIN", .excess, "fail",
            "LOGIN has more rights in the schema than a worker needs: EXECUTE ON FUNCTION postbell.supersede(", 1
        ),
        (
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO LOGIN; CREATE TABLE app.people (x int); "
                + "GRANT SELECT ON app.people TO LOGIN", .excess, "warn",
            "LOGIN may read tables of other schemas: app.people", 0
        ),
        (
            "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO LOGIN; CREATE TABLE app.people (x int); "
                + "GRANT DELETE ON app.people TO LOGIN", .excess, "fail",
            "LOGIN may change tables of other schemas: app.people", 1
        ),
        ("GRANT CREATE ON SCHEMA public TO LOGIN", .excess, "warn", "LOGIN may create objects in SCHEMA public", 0),
    ]

    @Test(arguments: rights)
    func aRightTooFewOrTooManyIsNamed(
        change: String, topic: CheckTopic, status: String, finding: String, end: Int32
    ) async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.withWorkerLogin { login in
                try await database.execute(change.replacing("LOGIN", with: login))
                let result = try database.run("check", "--json", settings: "user=\(login)")
                let report = try CheckOutput(result)
                #expect(result.status == end, "\(result.output)")
                #expect(report.statuses(topic) == [status], "\(report.findings(topic))")
                #expect(
                    report.findings(topic).first?.hasPrefix(finding.replacing("LOGIN", with: login)) == true,
                    "\(report.findings(topic))")
            }
        }
    }

    @Test func aSessionThatTakesNoWritesIsSaid() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            let result = try database.run("check", "--json", settings: "options='-c default_transaction_read_only=on'")
            #expect(result.status == 6)
            #expect(try CheckOutput(result).statuses(.primary) == ["fail"])
        }
    }

    @Test func aRouteThatNobodyServesIsNamed() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.execute(
                """
                SELECT postbell.define_kind('note', 'template', content => '{"title": "x"}');
                SELECT postbell.device_register('ada', 'phone', 'apns', 'com.example.other', repeat('0a', 32),
                    environment => 'sandbox');
                SELECT postbell.enqueue('note', 'ada', 'k1')
                """)
            let report = try CheckOutput(try database.run("check", "--json"))
            #expect(report.statuses(.routes) == ["warn", "ok"])
            #expect(
                report.findings(.routes).first
                    == "apns/sandbox/com.example.other is covered by no credential here and served by no worker; "
                    + "1 rows wait there until their deadline")
        }
    }

    // MARK: Judgements

    @Test(arguments: [
        ([ExitCode.bad, .refused, .schema, .unreachable, .configuration], ExitCode.configuration),
        ([.bad, .refused, .schema, .unreachable], .unreachable), ([.bad, .refused, .schema], .schema),
        ([.bad, .refused], .refused), ([.bad], .bad), ([], .done),
    ])
    func theMostFundamentalFailureGivesTheStatus(codes: [ExitCode], status: ExitCode) {
        var report = CheckReport(isOffline: false)
        report.add([.ok(.version, "x"), .warning(.clock, "x", next: "y")])
        report.add(codes.map { .failure(.database, $0, "x", next: "y") })
        #expect(report.code == status)
    }

    @Test(arguments: [
        (0, 0, CheckItem.Status.ok), (-900, 0, .ok), (2000, 0, .warning), (-2000, 0, .warning), (31_000, 0, .failure),
        (-31_000, 0, .failure), (2000, 2500, .ok),
    ])
    func aClockIsJudgedByWhatTheWayThereCannotExplain(
        aheadMilliseconds: Int, wayMilliseconds: Int, status: CheckItem.Status
    ) {
        let askedAt = Timestamp(microseconds: 1_000_000_000_000)
        let reading = askedAt + .milliseconds(aheadMilliseconds)
        let item = ClockExamination(lease: .seconds(30)).judge(
            reading, between: askedAt, and: askedAt + .milliseconds(wayMilliseconds))
        #expect(item.status == status)
    }

    @Test(arguments: [(140_000, CheckItem.Status.failure), (150_000, .ok), (180_006, .ok), (190_000, .warning)])
    func aServersVersionIsJudged(version: Int, status: CheckItem.Status) {
        let facts = ServerFacts(
            version: version, isInRecovery: false, isReadOnly: false, sessionUser: "u", currentUser: "u")
        #expect(DatabaseExamination.version(facts).status == status)
    }

    @Test func anEmptyCatalogIsSaid() {
        #expect(DatabaseExamination.kinds(CatalogSummary(enabled: 0, raw: [], unreadable: [])).status == .warning)
    }

    @Test func aKindThatCannotBeReadIsNamed() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.execute(
                """
                SELECT postbell.define_kind('note', 'template', content => '{"title": "x"}');
                UPDATE postbell.kinds SET retry = 'whenever' WHERE name = 'note'
                """)
            try await database.withWorkerLogin { login in
                let report = try CheckOutput(database.run("check", "--json", settings: "user=\(login)"))
                #expect(report.statuses(.kinds) == ["warn"])
                #expect(
                    report.findings(.kinds) == [
                        "cannot be read by this program, so that its notifications wait: note (its retry policy)"
                    ])
            }
        }
    }

    @Test func aHookThatMayNotBeAskedIsNamed() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.execute(
                """
                SELECT postbell.define_kind('note', 'template', content => '{"title": "x"}');
                INSERT INTO postbell.hooks (kind, purpose, function_schema, function_name, timeout)
                VALUES ('note', 'stale', 'app', 'over', '1 s')
                """)
            try await database.withWorkerLogin { login in
                let report = try CheckOutput(database.run("check", "--json", settings: "user=\(login)"))
                #expect(report.statuses(.hooks) == ["fail"])
                #expect(
                    report.findings(.hooks) == [
                        "nothing of the kind note is sent: its hook stale, app.over, is not asked; "
                            + "the function does not exist"
                    ])
            }
        }
    }

    @Test func hooksThatMayBeAskedAreCounted() {
        let items = DatabaseExamination.hooks(HookSummary(count: 2, faults: []))
        #expect(items.map(\.status) == [.ok])
    }

    @Test func aServerInRecoveryIsNoPrimary() {
        let facts = ServerFacts(
            version: 180_000, isInRecovery: true, isReadOnly: true, sessionUser: "u", currentUser: "u")
        #expect(DatabaseExamination.primary(facts).code == .unreachable)
    }

    @Test(arguments: [(nil, CheckItem.Status.ok), (59, .ok), (60, .warning), (899, .warning), (900, .failure)])
    func dueWorkThatWaitsLongIsSaid(seconds: Int?, status: CheckItem.Status) {
        let route = Route(number: 1, provider: "apns", environment: "sandbox", app: "com.example.app")
        let work = RouteWork(route: route, waiting: 3, oldestDue: seconds.map { .seconds($0) }, isServed: false)
        let items = RouteExamination(covers: { _ in true }).judge([work])
        #expect(items.first { $0.topic == .queue }?.status == status)
    }
}

/// What `postbell check --json` printed.
struct CheckOutput {
    let status: Int
    let items: [(topic: String, status: String, finding: String)]
    let unseen: [String]

    init(_ result: Program.Result) throws {
        let parsed = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        let object = try #require(parsed, "\(result.output) \(result.errors)")
        status = try #require(object["status"] as? Int)
        unseen = try #require(object["not_looked_at"] as? [String])
        items = try #require(object["items"] as? [[String: Any]]).map { item in
            (item["topic"] as? String ?? "", item["status"] as? String ?? "", item["finding"] as? String ?? "")
        }
    }

    func statuses(_ topic: CheckTopic) -> [String] {
        items.filter { $0.topic == topic.rawValue }.map(\.status)
    }

    func findings(_ topic: CheckTopic) -> [String] {
        items.filter { $0.topic == topic.rawValue }.map(\.finding)
    }
}
