import OutboxCore
import Testing

@testable import Operations

/// Several credentials of a provider: how they are named, and what does not go together.
@Suite struct CredentialSettingsTests {
    private static let standard = [
        "APNS_KEY_FILE": "/k/apns.p8", "APNS_KEY_ID": "ABC123DEFG", "APNS_TEAM_ID": "TEAM123456",
        "APNS_TOPIC": "com.example.app,com.example.other",
    ]
    private static let ios = [
        "POSTBELL_APNS_CREDENTIALS": "ios", "APNS_IOS_KEY_FILE": "/k/ios.p8", "APNS_IOS_KEY_ID": "IOS4567890",
        "APNS_IOS_TEAM_ID": "TEAM654321", "APNS_IOS_TOPIC": "com.example.ios",
    ]
    private static let fcm = ["FCM_SERVICE_ACCOUNT_FILE": "/k/fcm.json"]
    private static let tv = ["POSTBELL_FCM_CREDENTIALS": "tv", "FCM_TV_SERVICE_ACCOUNT_FILE": "/k/tv.json"]

    private func load(_ environment: [String: String]...) throws -> Configuration {
        try Configuration(SettingSources(environment: Self.joined(environment)), for: .dispatch)
    }

    private static func joined(_ parts: [[String: String]]) -> [String: String] {
        parts.reduce(into: [:]) { all, part in all.merge(part) { _, new in new } }.filter { !$0.value.isEmpty }
    }

    private func problems(_ environment: [String: String], for command: CommandName = .dispatch) -> [String] {
        do throws(ConfigurationProblems) {
            _ = try Configuration(SettingSources(environment: environment), for: command)
            return []
        } catch {
            return error.problems.map(\.line)
        }
    }

    // MARK: What is understood

    @Test func theStandardCredentialAndThoseListed() throws {
        let credentials = try load(Self.standard, Self.ios).apns.credentials
        #expect(credentials.map(\.name) == ["default", "ios"])
        #expect(credentials.map(\.keyID) == ["ABC123DEFG", "IOS4567890"])
        #expect(credentials.map { $0.variable(.keyFile) } == ["APNS_KEY_FILE", "APNS_IOS_KEY_FILE"])
        #expect(credentials.last?.topics == ["com.example.ios"])
        #expect(try load(Self.ios).apns.credentials.map(\.name) == ["ios"])
    }

    @Test func eachIsLookedForInTheDirectoryOfCredentials() throws {
        let environment = ["CREDENTIALS_DIRECTORY": "/run/c", "APNS_IOS_KEY_FILE": "ios"]
        let configuration = try load(Self.ios, Self.fcm, environment, ["FCM_SERVICE_ACCOUNT_FILE": "fcm"])
        #expect(configuration.apns.credentials.map(\.keyFile) == ["/run/c/ios"])
        #expect(configuration.fcm.credentials.map(\.serviceAccountFile) == ["/run/c/fcm"])
        #expect(configuration.fcm.credentials.map(\.credentialsDirectory) == ["/run/c"])
    }

    @Test func oneTopicInTwoEnvironmentsMayHaveTwoCredentials() throws {
        let credentials = try load(
            Self.standard, Self.ios,
            [
                "APNS_ENVIRONMENT": "production", "APNS_IOS_ENVIRONMENT": "sandbox",
                "APNS_IOS_TOPIC": "com.example.app",
            ]
        ).apns.credentials
        #expect(credentials.map(\.environments) == [["production"], ["sandbox"]])
    }

    @Test func oneKeyMayServeTwoSetsOfTopics() throws {
        let credentials = try load(
            Self.standard, Self.ios,
            [
                "APNS_IOS_KEY_FILE": "/k/apns.p8", "APNS_IOS_KEY_ID": "ABC123DEFG", "APNS_IOS_TEAM_ID": "TEAM123456",
            ]
        ).apns.credentials
        #expect(credentials.map(\.name) == ["default", "ios"])
    }

    @Test func aProviderThatIsNotServedHasNoCredentials() throws {
        let apns = try load(Self.standard, Self.fcm, ["POSTBELL_PROVIDERS": "apns"])
        #expect(apns.apns.credentials.count == 1 && apns.fcm.credentials.isEmpty)
        let fcm = try load(Self.standard, Self.fcm, ["POSTBELL_PROVIDERS": "fcm"])
        #expect(fcm.apns.credentials.isEmpty && fcm.fcm.credentials.count == 1)
        let both = try load(Self.standard, Self.fcm)
        #expect(both.apns.credentials.count == 1 && both.fcm.credentials.count == 1)
    }

    @Test func projectsAreToldApartByTheirApps() throws {
        let credentials = try load(
            Self.fcm, Self.tv, ["FCM_APP": "com.example.app,com.example.my_app", "FCM_TV_APP": "com.example.tv"]
        ).fcm.credentials
        #expect(credentials.map(\.name) == ["default", "tv"])
        #expect(credentials.map(\.apps) == [["com.example.app", "com.example.my_app"], ["com.example.tv"]])
        #expect(try load(Self.fcm).fcm.credentials.map(\.apps) == [nil])
    }

    // MARK: What is refused

    private static let refused: [(change: [String: String], line: String)] = [
        (
            ["APNS_KEY_FILE": "", "APNS_TEAM_ID": ""],
            "the APNs credential default is not complete; APNS_KEY_ID from environment, APNS_TOPIC from environment; "
                + "set APNS_KEY_FILE, APNS_TEAM_ID too"
        ),
        (
            [
                "APNS_KEY_FILE": "", "APNS_KEY_ID": "", "APNS_TEAM_ID": "", "APNS_TOPIC": "",
                "APNS_ENVIRONMENT": "sandbox",
            ],
            "the APNs credential default is not complete; APNS_ENVIRONMENT from environment; "
                + "set APNS_KEY_FILE, APNS_KEY_ID, APNS_TEAM_ID, APNS_TOPIC too"
        ),
        (
            ["APNS_IOS_TEAM_ID": ""],
            "the APNs credential ios is not complete; APNS_IOS_KEY_FILE from environment, APNS_IOS_KEY_ID from "
                + "environment, APNS_IOS_TOPIC from environment; set APNS_IOS_TEAM_ID too"
        ),
        (
            ["POSTBELL_APNS_CREDENTIALS": "ios,tv"],
            "the APNs credential tv is listed and has no settings; POSTBELL_APNS_CREDENTIALS from environment; "
                + "set APNS_TV_KEY_FILE, APNS_TV_KEY_ID, APNS_TV_TEAM_ID, APNS_TV_TOPIC, or take it out of the list"
        ),
        (
            ["POSTBELL_APNS_CREDENTIALS": ""],
            "APNS_IOS_KEY_FILE, APNS_IOS_KEY_ID, APNS_IOS_TEAM_ID, APNS_IOS_TOPIC belong to no credential of "
                + "POSTBELL_APNS_CREDENTIALS; environment; add ios to POSTBELL_APNS_CREDENTIALS, or unset it"
        ),
        (
            ["APNS_IOSS_TOPIC": "com.example.x"],
            "APNS_IOSS_TOPIC belongs to no credential of POSTBELL_APNS_CREDENTIALS; environment; did you mean ios?"
        ),
        (
            ["APNS_DEFAULT_TOPIC": "com.example.x"],
            "APNS_DEFAULT_TOPIC belongs to no credential of POSTBELL_APNS_CREDENTIALS; environment; "
                + "take DEFAULT_ out of the name: the credential default has none"
        ),
        (
            ["APNS_IOS_KEYFILE": "/k"],
            "APNS_IOS_KEYFILE is no setting of the APNs credential ios; environment; did you mean APNS_IOS_KEY_FILE?"
        ),
        (
            ["APNS_IOS_PASSPHRASE": "hush-hush"],
            "APNS_IOS_PASSPHRASE is no setting of the APNs credential ios; environment; its settings are "
                + "APNS_IOS_KEY_FILE, APNS_IOS_KEY_ID, APNS_IOS_TEAM_ID, APNS_IOS_TOPIC, APNS_IOS_ENVIRONMENT"
        ),
        (
            ["APNS_IOS_KEY_ID": "hush-hush"],
            "APNS_IOS_KEY_ID is not 10 capital letters and digits; environment; "
                + "write the 10 capital letters and digits that Apple's developer pages show"
        ),
        (
            ["APNS_IOS_ENVIRONMENT": "developement"],
            #"APNS_IOS_ENVIRONMENT "developement" has an unknown word; environment; "#
                + "write some of, with commas between them: production, sandbox"
        ),
        (
            ["APNS_IOS_TOPIC": "com.example.ios,com.example.app"],
            "the topic com.example.app in production and sandbox is of both APNs credentials, default and ios; "
                + "APNS_TOPIC from environment, APNS_IOS_TOPIC from environment; take it out of one of them, or give "
                + "each an environment by APNS_ENVIRONMENT and APNS_IOS_ENVIRONMENT"
        ),
        (
            ["APNS_IOS_TOPIC": "com.example.app", "APNS_ENVIRONMENT": "sandbox"],
            "the topic com.example.app in sandbox is of both APNs credentials, default and ios; "
                + "APNS_TOPIC from environment, APNS_IOS_TOPIC from environment; take it out of one of them, or give "
                + "each an environment by APNS_ENVIRONMENT and APNS_IOS_ENVIRONMENT"
        ),
        (
            ["APNS_IOS_KEY_ID": "ABC123DEFG", "APNS_IOS_TEAM_ID": "TEAM123456"],
            "the APNs credentials default and ios name one key and two files; APNS_KEY_FILE from environment, "
                + "APNS_IOS_KEY_FILE from environment; name the same file in both, or correct the key id of one"
        ),
        (
            ["POSTBELL_PROVIDERS": "fcm"],
            "POSTBELL_PROVIDERS asks for fcm, which has no credential; POSTBELL_PROVIDERS from environment; "
                + "set FCM_SERVICE_ACCOUNT_FILE"
        ),
    ]

    @Test(arguments: refused)
    func whatDoesNotGoTogetherIsOneLine(change: [String: String], line: String) {
        let found = problems(Self.joined([Self.standard, Self.ios, change]))
        #expect(found == [line])
        #expect(!found.joined().contains("hush-hush"))
    }

    private static let refusedProjects: [(change: [String: String], line: String)] = [
        (
            [:],
            "the FCM credential default serves all apps, and tv is there too; FCM_APP from default, "
                + "FCM_TV_APP from default; set FCM_APP to the apps of its project"
        ),
        (
            ["FCM_APP": "com.example.app"],
            "the FCM credential tv serves all apps, and default is there too; FCM_APP from environment, "
                + "FCM_TV_APP from default; set FCM_TV_APP to the apps of its project"
        ),
        (
            ["FCM_APP": "a.b,c.d", "FCM_TV_APP": "e.f,c.d"],
            "the app c.d is of both FCM credentials, default and tv; FCM_APP from environment, FCM_TV_APP from "
                + "environment; take it out of one of them"
        ),
        (
            ["FCM_APP": "a.b,c d"],
            "FCM_APP has an item, number 2, that is no app id; environment; "
                + "write 1 to 100 app ids with commas between them, such as com.example.app"
        ),
        (
            ["FCM_APP": "a.b", "FCM_TV_APP": "c.d", "FCM_TV_SERVICE_ACCOUNT_FILE": ""],
            "the FCM credential tv is not complete; FCM_TV_APP from environment; set FCM_TV_SERVICE_ACCOUNT_FILE too"
        ),
    ]

    @Test(arguments: refusedProjects)
    func projectsThatDoNotGoTogetherAreOneLine(change: [String: String], line: String) {
        #expect(problems(Self.joined([Self.fcm, Self.tv, change])) == [line])
    }

    @Test func askingForAProviderWithoutACredentialNamesItsSettings() {
        #expect(
            problems(["POSTBELL_PROVIDERS": "apns"]) == [
                "POSTBELL_PROVIDERS asks for apns, which has no credential; POSTBELL_PROVIDERS from environment; "
                    + "set APNS_KEY_FILE, APNS_KEY_ID, APNS_TEAM_ID, APNS_TOPIC"
            ])
    }

    @Test(arguments: [
        ("iOS", "has an item, number 1, that is no name of a credential"),
        ("ios,", "has an item, number 2, that is no name of a credential"),
        ("1ios", "has an item, number 1, that is no name of a credential"),
        ("my_app", "has an item, number 1, that is no name of a credential"),
        ("abcdefghijklmnopq", "has an item, number 1, that is no name of a credential"),
        ("ios,tv,ios", "names ios twice"),
        ("default", "names default, which is the credential without a name in its variables"),
        ((0...20).map { "c\($0)" }.joined(separator: ","), "has 21 items"),
    ])
    func aNameThatCannotBeOne(list: String, what: String) throws {
        let line = try #require(problems(["POSTBELL_APNS_CREDENTIALS": list]).first)
        #expect(line.hasPrefix("POSTBELL_APNS_CREDENTIALS ") && line.contains(" \(what); environment; write 1 to 20"))
    }

    /// A refused list says nothing about who is on it: what hangs on it would only be noise.
    @Test func aListThatCannotBeReadIsTheOnlyProblem() {
        #expect(problems(Self.joined([Self.ios, ["POSTBELL_APNS_CREDENTIALS": "iOS"]])).count == 1)
    }

    /// `APNS_KEY_ID` begins with `APNS_KEY_`, as the settings of a credential `key` do.
    @Test func aCredentialMayBeNamedLikeABeginningOfASetting() throws {
        let key = Dictionary(
            uniqueKeysWithValues: Self.ios.map { ($0.key.replacing("_IOS_", with: "_KEY_"), $0.value) })
        let credentials = try load(Self.standard, key, ["POSTBELL_APNS_CREDENTIALS": "key"]).apns.credentials
        #expect(credentials.map(\.name) == ["default", "key"])
    }

    @Test func aCommandThatReadsNoCredentialsDoesNotMindThem() {
        #expect(problems(["APNS_TV_KEY_ID": "x"], for: .migrate).isEmpty)
    }

    @Test func theConfigurationShowsEachCredential() throws {
        let environment = Self.joined([Self.standard, Self.ios, ["APNS_IOS_KEY_FILE": "-----BEGIN X"]])
        let result = try Program.run(["config"], environment: environment)
        #expect(result.status == 3)
        let rows = result.output.split(separator: "\n").map {
            $0.split(separator: " ", omittingEmptySubsequences: true)
        }
        #expect(rows.contains { $0.first == "APNS_IOS_TEAM_ID" && $0.dropFirst().first == "TEAM654321" })
        #expect(rows.contains { $0.first == "APNS_IOS_KEY_FILE" && $0.dropFirst().first == "(set," })
        #expect(!result.output.contains("BEGIN X"))
    }

    // MARK: Routes

    @Test func whatHelpsARouteThatNoCredentialCovers() throws {
        let configuration = try load(
            Self.standard, Self.ios, Self.fcm, ["FCM_APP": "a.b", "APNS_IOS_ENVIRONMENT": "sandbox"])
        func remedy(_ provider: String, _ environment: String, _ app: String) -> String {
            let words = configuration.remedy(
                forUncovered: .init(number: 1, provider: provider, environment: environment, app: app))
            return String(words.prefix { $0 != "," })
        }
        #expect(
            remedy("apns", "production", "com.example.ios")
                == "add production to APNS_IOS_ENVIRONMENT if the key is good there")
        #expect(remedy("apns", "sandbox", "com.example.x") == "add the app to APNS_TOPIC if the key is of its team")
        #expect(remedy("fcm", "", "c.d") == "add the app to FCM_APP if it is of that project")
        let nothing = try load([:])
        #expect(
            nothing.remedy(forUncovered: .init(number: 1, provider: "fcm", environment: "", app: "a"))
                .hasPrefix("set FCM_SERVICE_ACCOUNT_FILE"))
    }
}
