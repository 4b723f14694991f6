import Foundation
import Testing

@testable import Operations

/// The commands end to end: wrong input is answered in one clear line, with its status, and repeats no secret.
@Suite struct ProgramTests {
    /// What an operator could put where it does not belong.
    private static let secret = "hush-hush"

    @Test(
        arguments: [
            ([], [:], 2, "postbell: no command was given; command line; see `postbell --help`"),
            (["dispach"], [:], 2, #"postbell: there is no command "dispach"; argument 1; did you mean dispatch?"#),
            (
                ["dispatch", "--provider", "apns"], [:], 2,
                #"postbell: there is no option "--provider"; argument 2 of `postbell dispatch`; "#
                    + "did you mean --providers?"
            ),
            (
                ["dispatch"], ["POSTBELL_POLL": "5"], 3,
                #"postbell: POSTBELL_POLL "5" is a number without a unit; environment; "#
                    + "write a duration from 50ms to 1m, such as 1s"
            ),
            (
                ["dispatch"], ["POSTBELL_LAESE": secret], 3,
                "postbell: POSTBELL_LAESE is no setting of Postbell; environment; did you mean POSTBELL_LEASE?"
            ),
            (
                ["dispatch", "--providers=fmc"], [:], 3,
                #"postbell: POSTBELL_PROVIDERS "fmc" has an unknown word (did you mean fcm?); option --providers; "#
                    + "write some of, with commas between them: apns, fcm"
            ),
            (
                ["dispatch"], ["DATABASE_URL": secret], 3,
                "postbell: DATABASE_URL is no connection string of PostgreSQL; environment; "
                    + "write postgresql://user@host:port/database, or host=… dbname=…"
            ),
            (
                ["dispatch"], ["APNS_KEY_ID": "ABC123DEFG"], 3,
                "postbell: the APNs credential default is not complete; APNS_KEY_ID from environment; "
                    + "set APNS_KEY_FILE, APNS_TEAM_ID, APNS_TOPIC too"
            ),
            (
                ["dispatch"], ["POSTBELL_LEASE": "6s"], 3,
                "postbell: POSTBELL_LEASE 6s is not longer than a request and its settling, 12005ms; "
                    + "POSTBELL_LEASE from environment, POSTBELL_REQUEST_TIMEOUT from default, "
                    + "POSTBELL_SETTLE_DELAY from default; raise POSTBELL_LEASE or lower POSTBELL_REQUEST_TIMEOUT"
            ),
            (
                ["dispatch"], ["POSTBELL_STOP_TIMEOUT": "5s"], 3,
                "postbell: POSTBELL_STOP_TIMEOUT 5s would cut requests off, which may take "
                    + "POSTBELL_REQUEST_TIMEOUT 10s; POSTBELL_STOP_TIMEOUT from environment, "
                    + "POSTBELL_REQUEST_TIMEOUT from default; "
                    + "raise POSTBELL_STOP_TIMEOUT or lower POSTBELL_REQUEST_TIMEOUT"
            ),
            (
                ["dispatch"], ["POSTBELL_BATCH": "0x10"], 3,
                #"postbell: POSTBELL_BATCH "0x10" is not a whole number; environment; "#
                    + "write a whole number from 1 to 5000, such as 1000"
            ),
            (
                ["check", "--offlin"], [:], 2,
                #"postbell: there is no option "--offlin"; argument 2 of `postbell check`; did you mean --offline?"#
            ),
            (
                ["check", "--json=yes"], [:], 2,
                "postbell: --json takes no value; argument 2 of `postbell check`; write --json alone"
            ),
            (
                ["config", "--env-file"], [:], 2,
                "postbell: --env-file lacks its value; argument 2 of `postbell config`; write --env-file FILE"
            ),
            (
                ["migrate", "now"], [:], 2,
                #"postbell: "now" is one argument too many; argument 2 of `postbell migrate`; "#
                    + "see `postbell migrate --help`"
            ),
            (
                ["config", "--env-file", "/nowhere/x.env"], [:], 3,
                "postbell: the environment file cannot be read: No such file or directory; /nowhere/x.env; "
                    + "correct it; its format is that of systemd's EnvironmentFile="
            ),
        ] as [([String], [String: String], Int32, String)])
    func wrongInput(arguments: [String], environment: [String: String], status: Int32, line: String) throws {
        let result = try Program.run(arguments, environment: environment)
        #expect(result.status == status)
        #expect(result.lines == [line])
        #expect(result.output.isEmpty)
        #expect(!result.errors.contains(Self.secret))
    }

    @Test func allProblemsAreSaidAtOnceEachOnItsLine() throws {
        let file = try TemporaryFile("POSTBELL_BATCH=0\nPOSTBELL_POLL='1\n2'\n")
        let result = try Program.run(
            ["dispatch", "--env-file", file.path],
            environment: ["APNS_KEY_FILE": "-----BEGIN PRIVATE KEY-----\n\(Self.secret)"])
        #expect(result.status == 3)
        #expect(result.lines.count == 4)
        #expect(result.lines.allSatisfy { $0.hasPrefix("postbell: ") && $0.split(separator: "; ").count == 3 })
        #expect(result.errors.contains("; \(file.path) line 1; "))
        #expect(result.errors.contains(#"POSTBELL_POLL "1\u{a}2" has an unknown unit"#))
        #expect(result.errors.contains("APNS_KEY_FILE holds the key or certificate itself, not a path; environment; "))
        #expect(!result.errors.contains(Self.secret))
    }

    /// What a file holds, what is wrong with it, and on which line.
    private static let files: [(content: String, what: String, line: Int?)] = [
        ("A=1\n\(secret)\n", "is not NAME=value", 2),
        ("A=1\n\n2\(secret)=x\n", "does not begin with the name of a variable", 3),
        ("A=1\nB='\(secret)\nC=2\n", "has a quote without its end", 2),
        ("A=\(secret)\u{0}\n", "is not UTF-8 text", nil),
        (String(repeating: "#\(secret)\n", count: 150_000), "is larger than 1 MiB", nil),
    ]

    @Test(arguments: files, ["config", "check", "dispatch", "migrate"])
    func aBrokenEnvironmentFileIsNamedWithItsLine(
        file: (content: String, what: String, line: Int?), command: String
    ) throws {
        let stored = try TemporaryFile(file.content)
        let result = try Program.run([command, "--env-file", stored.path])
        #expect(result.status == 3)
        let place = stored.path + (file.line.map { " line \($0)" } ?? "")
        #expect(
            result.lines == [
                "postbell: the environment file \(file.what); \(place); "
                    + "correct it; its format is that of systemd's EnvironmentFile="
            ])
        #expect(result.output.isEmpty)
    }

    @Test func configShowsValuesAndTheirOriginButNoSecret() throws {
        let file = try TemporaryFile("POSTBELL_POLL=2s\nPGPASSWORD=\(Self.secret)\nPGHOST=db.internal\n")
        let environment = [
            "DATABASE_URL": "postgresql://u:\(Self.secret)@h/d", "POSTBELL_BATCH": "7", "APNS_KEY_FILE": "/etc/k.p8",
            "APNS_KEY_ID": "ABC123DEFG", "APNS_TEAM_ID": "DEF123GHIJ", "APNS_TOPIC": "com.example.app",
        ]
        let result = try Program.run(["config", "--env-file", file.path], environment: environment)
        #expect(result.status == 0)
        #expect(result.errors.isEmpty)
        #expect(!result.output.contains(Self.secret))
        let rows = result.output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        #expect(rows.contains("POSTBELL_POLL 2s \(file.path) line 1 50ms–1m"))
        #expect(rows.contains("POSTBELL_BATCH 7 environment 1–5000"))
        #expect(rows.contains("POSTBELL_LEASE 30s default 5s–15m"))
        #expect(rows.contains("APNS_KEY_FILE /etc/k.p8 environment a file"))
        #expect(rows.contains("DATABASE_URL (set, not shown) environment as libpq reads it"))
        #expect(rows.contains("PGPASSWORD (set, not shown) \(file.path) line 2 as libpq reads it"))
        #expect(rows.contains("PGHOST db.internal \(file.path) line 3 as libpq reads it"))
    }

    @Test func configShowsWhatIsWrongToo() throws {
        let result = try Program.run(["config"], environment: ["POSTBELL_POLL": "5", "APNS_TOPIC": "\(Self.secret)/x"])
        #expect(result.status == 3)
        #expect(result.output.contains("POSTBELL_POLL"))
        #expect(result.lines.count == 3)
        #expect(!(result.output + result.errors).contains(Self.secret))
    }

    @Test func configInJSON() throws {
        let result = try Program.run(["config", "--json"], environment: ["POSTBELL_POLL": "2s"])
        let rows = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
        #expect(rows.count == SettingName.allCases.count)
        let poll = try #require(rows.first { $0["name"] as? String == "POSTBELL_POLL" })
        #expect(poll["value"] as? String == "2s")
        #expect(poll["origin"] as? String == "environment")
        #expect(poll["default"] as? String == "1s")
        #expect(poll["range"] as? String == "50ms–1m")
    }

    @Test func helpAndVersionAreForStandardOutput() throws {
        for arguments in [["--help"], ["--version"], ["config", "--help"]] {
            let result = try Program.run(arguments)
            #expect(result.status == 0)
            #expect(!result.output.isEmpty)
            #expect(result.errors.isEmpty)
        }
        #expect(try Program.run(["--version"]).output == "postbell \(PostbellVersion.current)\n")
    }
}
