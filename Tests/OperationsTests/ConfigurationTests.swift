import Foundation
import OutboxCore
import Telemetry
import Testing

@testable import Operations

@Suite struct ConfigurationTests {
    private static let credential = [
        "APNS_KEY_FILE": "/etc/postbell/apns.p8", "APNS_KEY_ID": "ABC123DEFG", "APNS_TEAM_ID": "DEF123GHIJ",
        "APNS_TOPIC": "com.example.app,com.example.other",
    ]

    private func load(
        _ environment: [String: String], file: String? = nil,
        options: [SettingName: (option: String, value: String)] = [:],
        for command: CommandName = .dispatch
    ) throws -> Configuration {
        let file = try file.map { try EnvironmentFile(path: "/etc/x.env", text: $0) }
        return try Configuration(SettingSources(environment: environment, file: file, options: options), for: command)
    }

    /// The lines that are said about `environment`.
    private func problems(
        _ environment: [String: String], file: String? = nil,
        options: [SettingName: (option: String, value: String)] = [:],
        for command: CommandName = .dispatch
    ) throws -> [String] {
        do {
            _ = try load(environment, file: file, options: options, for: command)
            return []
        } catch let error as ConfigurationProblems {
            return error.problems.map(\.line)
        }
    }

    @Test func everySettingHasOneRow() {
        let rows = SettingsTable.groups.flatMap(\.settings).map(\.name)
        #expect(rows.count == SettingName.allCases.count)
        #expect(Set(rows) == Set(SettingName.allCases))
        for setting in SettingsTable.groups.flatMap(\.settings) {
            #expect(!setting.commands.isEmpty)
            if let standard = setting.standard {
                #expect(throws: Never.self, "\(setting.name)") { try setting.type.parse(standard) }
            }
        }
    }

    @Test func nothingSetMeansTheDefaultsAndNoProvider() throws {
        let configuration = try load([:])
        #expect(configuration.database == .init(connectionString: "", variables: [:]))
        #expect(configuration.apns.credentials.isEmpty && configuration.fcm.credentials.isEmpty)
        #expect(configuration.apns.endpoint == nil)
        #expect(configuration.apns.tokenRefresh == .seconds(2400))
        #expect(configuration.apns.serverErrorDelay == .seconds(900))
        #expect(configuration.apns.pause == .seconds(2400))
        #expect(configuration.dispatch.proofWindow == .seconds(86_400))
        #expect(configuration.dispatch.listens)
        #expect(configuration.dispatch.poll == .seconds(1))
        #expect(configuration.dispatch.batch == 1000)
        #expect(configuration.dispatch.lease == .seconds(30))
        #expect(configuration.dispatch.recheckAfter == .seconds(1))
        #expect(configuration.dispatch.targetsPerClaim == 500)
        #expect(configuration.dispatch.settleRows == 1000)
        #expect(configuration.dispatch.settleDelay == .milliseconds(5))
        #expect(configuration.dispatch.stopTimeout == .seconds(20))
        #expect(configuration.dispatch.retry == .standard)
        #expect(configuration.dispatch.maxCrashes == 5)
        #expect(configuration.dispatch.maxFailures == 0)
        #expect(configuration.dispatch.retryBudget == 10)
        #expect(configuration.dispatch.stormShare == 20)
        #expect(configuration.dispatch.stormCount == 20)
        #expect(configuration.dispatch.stormWindow == .seconds(300))
        #expect(configuration.dispatch.stuckAfter == .seconds(300))
        #expect(configuration.connections.concurrency == 1000)
        #expect(configuration.connections.most == 4)
        #expect(configuration.connections.requestTimeout == .seconds(10))
        #expect(configuration.connections.connectTimeout == .seconds(10))
        #expect(configuration.connections.pingAfter == .seconds(15))
        #expect(configuration.connections.pingTimeout == .seconds(5))
        #expect(configuration.connections.idleTimeout == .seconds(3600))
        #expect(configuration.connections.certificateFile == nil)
        #expect(configuration.connections.proxy(to: "api.push.apple.com") == nil)
        #expect(configuration.fcm.endpoint == nil && configuration.fcm.tokenEndpoint == nil)
        #expect(configuration.fcm.quotaDelay == .seconds(60))
        #expect(configuration.fcm.pause == .seconds(300))
        #expect(configuration.logging == .init(level: .info, format: .logfmt))
    }

    @Test func aCredentialOfFourParts() throws {
        let credential = try #require(try load(Self.credential).apns.credentials.first)
        #expect(credential.name == "default")
        #expect(credential.environments == ["production", "sandbox"])
        #expect(credential.keyFile == "/etc/postbell/apns.p8")
        #expect(credential.keyID == "ABC123DEFG")
        #expect(credential.teamID == "DEF123GHIJ")
        #expect(credential.topics == ["com.example.app", "com.example.other"])
    }

    @Test func aRelativeKeyFileIsInTheDirectoryOfCredentials() throws {
        var environment = Self.credential
        environment["APNS_KEY_FILE"] = "apns.p8"
        #expect(try load(environment).apns.credentials.first?.keyFile == "apns.p8")
        environment["CREDENTIALS_DIRECTORY"] = "/run/credentials/x"
        #expect(try load(environment).apns.credentials.first?.keyFile == "/run/credentials/x/apns.p8")
        environment["APNS_KEY_FILE"] = "/k.p8"
        #expect(try load(environment).apns.credentials.first?.keyFile == "/k.p8")
    }

    @Test func optionsGoBeforeTheEnvironmentAndThatBeforeTheFile() throws {
        let file = "POSTBELL_BATCH=1\nPOSTBELL_POLL=1s\nPGHOST=file\nPGUSER=file\nOTHER=x\n"
        let environment = ["POSTBELL_POLL": "2s", "PGHOST": "environment", "POSTBELL_LOG_LEVEL": " "]
        let configuration = try load(environment, file: file)
        #expect(configuration.dispatch.batch == 1)
        #expect(configuration.dispatch.poll == .seconds(2))
        #expect(configuration.database.variables == ["PGUSER": "file"])
        #expect(configuration.logging.level == .info)
        let options: [SettingName: (option: String, value: String)] = [.poll: ("--poll", "3s")]
        #expect(try load(environment, file: file, options: options).dispatch.poll == .seconds(3))
    }

    @Test func aCommandReadsOnlyWhatConcernsIt() throws {
        let environment = ["POSTBELL_POLL": "5", "APNS_KEY_ID": "x", "DATABASE_URL": "postgres:///d"]
        #expect(try load(environment, for: .migrate).database.connectionString == "postgres:///d")
        #expect(try problems(environment, for: .dispatch).count == 3)
        #expect(try problems(environment, for: .config).count == 3)
    }

    @Test(arguments: [
        (
            ["POSTBELL_POLL": "5"],
            #"POSTBELL_POLL "5" is a number without a unit; environment; write a duration from 50ms to 1m, such as 1s"#
        ),
        (
            ["POSTBELL_BATCH": "5001"],
            #"POSTBELL_BATCH "5001" is too large; environment; write a whole number from 1 to 5000, such as 1000"#
        ),
        (
            ["POSTBELL_RETRY": "30s,2"],
            #"POSTBELL_RETRY "30s,2" has an item, number 2, that is a number without a unit; environment; "#
                + "write 1 to 20 durations from 1s to 7d, with commas between them, such as 30s,2m,10m,1h"
        ),
        (
            ["POSTBELL_WAKE": "lisen\u{1B}[31m"],
            #"POSTBELL_WAKE "lisen\u{1b}[31m" has an unknown word; environment; write one of: listen, poll"#
        ),
        (
            ["POSTBELL_PROVIDERS": "apns,gcm"],
            #"POSTBELL_PROVIDERS "apns,gcm" has an unknown word (did you mean fcm?); environment; "#
                + "write some of, with commas between them: apns, fcm"
        ),
        (
            ["POSTBELL_APNS_ENDPOINT": "http://u:secret@host"],
            "POSTBELL_APNS_ENDPOINT is not an https:// URL; environment; write https://host or https://host:port"
        ),
        (
            ["DATABASE_URL": "secret"],
            "DATABASE_URL is no connection string of PostgreSQL; environment; "
                + "write postgresql://user@host:port/database, or host=… dbname=…"
        ),
        (
            ["POSTBELL_CA_FILE": "-----BEGIN CERTIFICATE-----"],
            "POSTBELL_CA_FILE holds the key or certificate itself, not a path; environment; "
                + "write the path of a file, such as /etc/postbell/apns.p8"
        ),
        (
            ["POSTBELL_POL": "1s"],
            "POSTBELL_POL is no setting of Postbell; environment; did you mean POSTBELL_POLL?"
        ),
        (
            ["POSTBELL_COFFEE": "1"],
            "POSTBELL_COFFEE is no setting of Postbell; environment; remove it (`postbell config` lists all)"
        ),
        (
            ["POSTBELL_LEASE": "12s"],
            "POSTBELL_LEASE 12s is not longer than a request and its settling, 12005ms; "
                + "POSTBELL_LEASE from environment, POSTBELL_REQUEST_TIMEOUT from default, "
                + "POSTBELL_SETTLE_DELAY from default; "
                + "raise POSTBELL_LEASE or lower POSTBELL_REQUEST_TIMEOUT"
        ),
        (
            ["POSTBELL_STOP_TIMEOUT": "9s"],
            "POSTBELL_STOP_TIMEOUT 9s would cut requests off, which may take POSTBELL_REQUEST_TIMEOUT 10s; "
                + "POSTBELL_STOP_TIMEOUT from environment, POSTBELL_REQUEST_TIMEOUT from default; "
                + "raise POSTBELL_STOP_TIMEOUT or lower POSTBELL_REQUEST_TIMEOUT"
        ),
    ])
    func eachProblemIsOneLine(environment: [String: String], line: String) throws {
        #expect(try problems(environment) == [line])
    }

    @Test func aProblemInAFileNamesItsLine() throws {
        let file = "# x\nPOSTBELL_POLL=soon\nPOSTBELL_LAESE=1\n"
        #expect(
            try problems([:], file: file) == [
                #"POSTBELL_POLL "soon" is not a duration; /etc/x.env line 2; "#
                    + "write a duration from 50ms to 1m, such as 1s",
                "POSTBELL_LAESE is no setting of Postbell; /etc/x.env line 3; did you mean POSTBELL_LEASE?",
            ])
    }

    @Test func aProblemInAnOptionNamesTheOption() throws {
        #expect(
            try problems(Self.credential, options: [.providers: ("--providers", "apsn")]) == [
                #"POSTBELL_PROVIDERS "apsn" has an unknown word (did you mean apns?); option --providers; "#
                    + "write some of, with commas between them: apns, fcm"
            ])
    }

    @Test func aRefusedPartOfACredentialIsNotMissing() throws {
        var environment = Self.credential
        environment["APNS_TEAM_ID"] = "short"
        #expect(try problems(environment).count == 1)
    }

    @Test func allProblemsAreSaidAtOnce() throws {
        let environment = ["POSTBELL_POLL": "5", "POSTBELL_BATCH": "x", "POSTBELL_NO": "1", "POSTBELL_LEASE": "5s"]
        #expect(try problems(environment).count == 4)
    }

    @Test func noSecretIsInADescription() throws {
        let configuration = try load(["DATABASE_URL": "postgres://u:hush@h/d"], file: "PGPASSWORD=hush")
        var dumped = "\(configuration) \(String(reflecting: configuration)) \(configuration.database)"
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("hush"))
    }

    @Test func theReferencePageIsTheTable() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        let file = root.appending(path: "docs/configuration.md")
        let page = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        if page != ConfigurationPage.markdown {
            let new = FileManager.default.temporaryDirectory.appending(path: "configuration.md")
            try ConfigurationPage.markdown.write(to: new, atomically: true, encoding: .utf8)
            Issue.record("docs/configuration.md is not what the table says; the page as it should be: \(new.path)")
        }
    }
}
