import FakeProviders
import Foundation
import Support
import Testing

/// Several credentials in one worker: each serves its own devices, and what is wrong with one harms no other.
@Suite(.serialized) struct CredentialTests {
    private static let tv = "com.example.tv"
    private static let tvKeyID = "TVKEY12345"
    private static let tvTeamID = "TEAM987654"

    /// A stage whose fake knows a second key, of another team, and what makes it the credential `tv` of a worker.
    private static func onTwoTeams(_ body: (Stage, [String: String]) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: "tv.p8").path
        try IdentityFiles.makeProviderKey(at: file)
        let key = try IdentityFiles.providerKey(at: file, keyID: tvKeyID, teamID: tvTeamID)
        let environment = [
            "POSTBELL_APNS_CREDENTIALS": "tv", "APNS_TV_KEY_FILE": file, "APNS_TV_KEY_ID": tvKeyID,
            "APNS_TV_TEAM_ID": tvTeamID, "APNS_TV_TOPIC": tv,
        ]
        try await Stage.on(.postgres15) {
            $0.keys.append(key)
            $0.topics.insert(tv)
        } _: { stage in
            try await body(stage, environment)
        }
    }

    /// Registers one device and enqueues one notification for it under the key `name`.
    private func enqueue(
        _ name: String, app: String = Stage.topic, environment: String = "sandbox", on stage: Stage
    ) async throws {
        try await stage.run(
            """
            SELECT postbell.device_register('\(name)', 'phone', 'apns', '\(app)', md5('\(name)') || md5('x\(name)'),
                environment => '\(environment)')
            """)
        try await stage.enqueue(name, key: name)
    }

    @Test func oneWorkerServesTwoTeamsInLanesOfTheirOwn() async throws {
        try await Self.onTwoTeams { stage, tv in
            for environment in ["sandbox", "production"] {
                try await enqueue("phone-\(environment)", environment: environment, on: stage)
                try await enqueue("tv-\(environment)", app: Self.tv, environment: environment, on: stage)
            }
            let worker = try stage.startWorker(tv)
            for name in ["phone-sandbox", "phone-production", "tv-sandbox", "tv-production"] {
                try await stage.waitFor(name, "dispatched")
                #expect(try await stage.outcomes(name) == ["delivered"])
            }
            let pairs = Set(await stage.apns.requests.map { "\($0.headers["apns-topic"] ?? "") \($0.keyID ?? "")" })
            #expect(pairs == ["\(Stage.topic) \(Stage.keyID)", "\(Self.tv) \(Self.tvKeyID)"])
            // Each key signs once, whatever number of lanes it has.
            let tokens = Set(await stage.apns.requests.map { "\($0.keyID ?? "") \($0.issuedAt ?? 0)" })
            #expect(tokens.count == 2)
            let lanes = Set(await stage.apns.requests.map(\.connection))
            #expect(lanes.count == 4, "a connection for each lane")
            let report = try await stage.postbell("status", "--json")
            for lane in ["production/default", "sandbox/default", "production/tv", "sandbox/tv"] {
                #expect(report.output.contains(#""apns/\#(lane)""#), "\(report.output)")
            }
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    @Test func twoCredentialsOfOneKeyMakeOneToken() async throws {
        try await Self.onTwoTeams { stage, tv in
            let worker = try stage.startWorker(
                tv.merging([
                    "APNS_KEY_FILE": tv["APNS_TV_KEY_FILE"] ?? "", "APNS_KEY_ID": Self.tvKeyID,
                    "APNS_TEAM_ID": Self.tvTeamID,
                ]) { _, new in new })
            try await enqueue("phone", on: stage)
            try await enqueue("tv", app: Self.tv, on: stage)
            try await stage.waitFor("phone", "dispatched")
            try await stage.waitFor("tv", "dispatched")
            let headers = Set(await stage.apns.requests.map { $0.headers["authorization"] ?? "" })
            #expect(headers.count == 1)
            #expect(try await worker.stop() == 0)
        }
    }

    /// A device whose environment no credential covers is nobody's: it waits and is named, and nothing is sent for it.
    @Test func anEnvironmentWithoutACredentialIsNamedAndNothingIsSentThere() async throws {
        try await Self.onTwoTeams { stage, tv in
            let settings = tv.merging(["APNS_ENVIRONMENT": "production"]) { _, new in new }
            let worker = try stage.startWorker(settings)
            try await enqueue("store", environment: "production", on: stage)
            try await enqueue("xcode", environment: "sandbox", on: stage)
            try await enqueue("tv", app: Self.tv, environment: "sandbox", on: stage)
            try await stage.waitFor("store", "dispatched")
            try await stage.waitFor("tv", "dispatched")
            try await eventually("the route is named") {
                worker.errors.split(separator: "\n").contains {
                    $0.contains("no worker serves") && $0.contains("environment=sandbox app=\(Stage.topic)")
                }
            }
            #expect(try await stage.status("xcode") == "pending")
            #expect(await stage.apns.requests.count == 2)
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["0"])
            let status = try await stage.postbell("status", overriding: settings)
            #expect(status.status == 1)
            #expect(status.output.contains("no live worker serves apns/sandbox/\(Stage.topic)"), "\(status.output)")
            let check = try await stage.postbell("check", overriding: settings)
            let warning = try #require(check.lines("warn  routes").first, "\(check.output)")
            #expect(warning.contains("apns/sandbox/\(Stage.topic) is covered by no credential"))
            #expect(warning.contains("add sandbox to APNS_ENVIRONMENT if the key is good there"))
            // Whoever has a key for it serves it beside the first.
            let other = try stage.startWorker(["APNS_ENVIRONMENT": "sandbox"])
            try await stage.waitFor("xcode", "dispatched")
            #expect(try await worker.stop() == 0)
            #expect(try await other.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    // MARK: SIGHUP

    /// Shell commands that put something else in the place of the key `$1`, and what the log then says of the file.
    private static let mistakes: [(commands: String, complaint: String)] = [
        ("rm \"$1\"", "does not exist"),
        (": >\"$1\"", "is empty"),
        ("chmod 644 \"$1\"", "has mode 0644, so others can read or change it"),
        ("rm \"$1\"; mkdir \"$1\"", "is not a regular file"),
        (
            "openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out \"$1.n\"; mv \"$1.n\" \"$1\"",
            "holds an RSA key"
        ),
        (
            "openssl pkcs8 -topk8 -in \"$1\" -passout pass:x -out \"$1.n\"; mv \"$1.n\" \"$1\"",
            "holds an encrypted key"
        ),
        (
            "openssl req -x509 -new -key \"$1\" -subj /CN=x -days 2 -out \"$1.n\"; mv \"$1.n\" \"$1\"",
            "holds a certificate"
        ),
    ]

    @Test(arguments: mistakes)
    func aBadKeyAtSIGHUPIsSaidAndTheOldOneGoesOnSending(commands: String, complaint: String) async throws {
        try await Self.onTwoTeams { stage, tv in
            let worker = try stage.startWorker(tv)
            try await enqueue("before", app: Self.tv, on: stage)
            try await stage.waitFor("before", "dispatched")
            let file = try #require(tv["APNS_TV_KEY_FILE"])
            let shell = try await CommandRun.of(
                "/bin/sh", ["-ec", "umask 077; \(commands)", "sh", file], environment: ["PATH": "/usr/bin:/bin"],
                in: stage.directory)
            try #require(shell.status == 0, "\(shell.errors)")
            worker.send(SIGHUP)
            try await eventually("both lanes of the credential say what is wrong") {
                ["production", "sandbox"].allSatisfy { environment in
                    worker.errors.split(separator: "\n").contains {
                        $0.contains("lane=apns/\(environment)/tv") && $0.contains("\(file) \(complaint)")
                    }
                }
            }
            try await eventually("the other credential is the same") {
                worker.errors.contains(
                    "credential was read again: it is the same\" lane=apns/sandbox/default")
            }
            for (name, app) in [("after-tv", Self.tv), ("after", Stage.topic)] {
                try await enqueue(name, app: app, on: stage)
                try await stage.waitFor(name, "dispatched")
                #expect(try await stage.outcomes(name) == ["delivered"])
            }
            let headers = await stage.apns.requests.filter { $0.keyID == Self.tvKeyID }.map {
                $0.headers["authorization"]
            }
            #expect(headers.count == 2 && Set(headers).count == 1, "the old key's token")
            #expect(!worker.errors.contains("lane is paused"))
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }

    /// The wrong key is put right while the worker runs: nothing is lost, and no device has suffered.
    @Test func aKeyThatWasWrongIsReplacedByARightOneAtSIGHUP() async throws {
        try await Stage.on(.postgres15, keyMatches: false) { stage in
            let worker = try stage.startWorker()
            for number in 1...20 { try await enqueue("p\(number)", on: stage) }
            try await eventually("the lane is paused") { worker.errors.contains("lane is paused") }
            #expect(
                try await stage.texts("SELECT count(*) FROM postbell.notifications WHERE status = 'pending'") == ["20"])
            let directory = stage.directory
            try FileManager.default.removeItem(at: directory.appending(path: "key.p8"))
            try FileManager.default.moveItem(
                at: directory.appending(path: "known.p8"), to: directory.appending(path: "key.p8"))
            worker.send(SIGHUP)
            for number in 1...20 { try await stage.waitFor("p\(number)", "dispatched") }
            #expect(worker.errors.contains("credential was read again: it is another"))
            #expect(try await stage.texts("SELECT count(*) FROM postbell.devices WHERE token IS NULL") == ["0"])
            #expect(
                try await stage.texts("SELECT DISTINCT outcome FROM postbell.ledger ORDER BY 1")
                    == ["delivered", "misconfigured"])
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
        }
    }
}
