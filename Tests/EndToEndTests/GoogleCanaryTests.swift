import FakeProviders
import Foundation
import Support
import Testing

/// A service account's key, assertions, access tokens, registration tokens and a proxy's login go through a worker that
/// has every kind of trouble; none of them comes out anywhere but where it belongs.
@Suite(.serialized, .timeLimit(.minutes(5))) struct GoogleCanaryTests {
    /// Faults that concern one token, and those of a connection.
    private static let moods = [
        "ok", "fa-unregistered", "fa-bad-token", "fa-bad-payload", "fa-sender-mismatch", "fa-third-party-auth",
        "fa-device-quota", "fa-internal", "fa-page", "fa-empty-400", "fa-unavailable-1", "fa-silence", "fa-reset",
        "fa-closed", "fa-unauthenticated-1",
    ]

    /// What goes wrong on the way to the first access token, and what is said of it at the worker's level.
    struct Round: CustomTestStringConvertible {
        let level: String
        let format: String
        /// What the proxy answers first; it repeats what it was asked.
        let refusal: Int
        /// What the token endpoint answers then.
        let answer: TokenEndpointAnswer
        var words: [String] = []

        var testDescription: String { "\(level), \(format)" }
    }

    static let rounds = [
        Round(
            level: "debug", format: "logfmt", refusal: 407,
            answer: .refused(error: "invalid_grant", description: Canary.complaint),
            words: [
                "settled", "407 Proxy Authentication Required", "400 invalid_grant",
                "holds no JSON object", "fcm/default",
            ]),
        Round(
            level: "debug", format: "json", refusal: 502,
            answer: .refused(error: Canary.complaint, description: Canary.complaint),
            words: ["settled", "502 Bad Gateway", "token_refused"]),
        Round(level: "info", format: "logfmt", refusal: 403, answer: .down),
        Round(level: "notice", format: "json", refusal: 407, answer: .cutOff),
        Round(level: "warning", format: "logfmt", refusal: 302, answer: .page(status: 502)),
        Round(level: "error", format: "json", refusal: 407, answer: .unanswered(.closed)),
    ]

    @Test(arguments: rounds) func noLogHoldsACanary(round: Round) async throws {
        try await GoogleStage.on { stage, google in
            let proxy = try ConnectProxy(refusingBy: round.refusal)
            defer { proxy.stop() }
            let worker = try Self.startWorker(
                stage, google, proxy, ["POSTBELL_LOG_LEVEL": round.level, "POSTBELL_LOG_FORMAT": round.format])
            try await Self.trouble(worker, round, stage, google, proxy)
            let canary = try await Canary(google: google)
            #expect(canary.texts.contains { $0.name == "access token" })
            #expect(canary.texts.contains { $0.name == "assertion" })
            for file in ["environ", "cmdline"] {
                let text = (try? Data(contentsOf: URL(filePath: "/proc/\(worker.identifier)/\(file)"))) ?? Data()
                #expect(canary.found(in: String(decoding: text, as: UTF8.self)) == [])
            }
            for command in ["config", "check", "status"] {
                let run = try await stage.postbell(
                    command, "--env-file", Self.file(stage), overriding: google.environment)
                #expect(canary.found(in: run.output + run.errors) == [], "\(command)")
            }
            #expect(try await worker.stop() == 0)
            #expect(canary.found(in: worker.errors) == [])
            // There was something to leave out.
            for words in round.words { #expect(worker.errors.contains(words), "\(words)") }
            let places = try await canary.found(in: stage)
            #expect(
                places == ["devices.token: registration token", "outbox.payload: tool", "outbox.payload: approval"])
        }
    }

    /// Everything that a proxy, Google, an operator and a network do to a worker.
    private static func trouble(
        _ worker: WorkerProcess, _ round: Round, _ stage: Stage, _ google: GoogleStage, _ proxy: ConnectProxy
    ) async throws {
        try await push("ok", "first", stage)
        await google.tokens.misbehave(round.answer, times: 1)
        try await eventually("the proxy has refused") { !proxy.requests.isEmpty }
        proxy.letThrough()
        try await eventually("the token endpoint has been asked") { await google.tokens.statistics.requests > 0 }
        // A refused account pauses the lane, and something else in the place of its file is no help.
        let account = try String(contentsOfFile: google.file, encoding: .utf8)
        try IdentityFiles.replace(google.file, with: Array(Canary.wrongKey.utf8), mode: 0o600)
        worker.send(SIGHUP)
        try await eventually("the wrong file is told of") { worker.errors.contains("holds no JSON object") }
        try IdentityFiles.replace(google.file, with: Array(account.utf8), mode: 0o600)
        worker.send(SIGHUP)
        try await stage.waitFor("first", "dispatched")
        for mood in moods { try await push(mood, mood, stage) }
        for mood in moods {
            try await eventually("\(mood) has an answer") { try await !stage.outcomes(mood).isEmpty }
        }
        // Refused as a sender, and then as one that sends too much; both perhaps at a second try, because what was
        // closed is tried again meanwhile.
        try await push("fa-permission-denied-1", "denied", stage)
        try await eventually("the sender is refused") { try await stage.outcomes("denied").contains("misconfigured") }
        worker.send(SIGHUP)
        try await push("ok", "last", stage)
        try await stage.waitFor("last", "dispatched")
        try await push("fa-project-quota", "quota", stage)
        try await eventually("the project is throttled") { try await stage.outcomes("quota").contains("throttled") }
    }

    private static func file(_ stage: Stage) -> String { stage.directory.appending(path: "proxy.env").path }

    /// A worker for FCM alone whose way out is in a file of settings.
    private static func startWorker(
        _ stage: Stage, _ google: GoogleStage, _ proxy: ConnectProxy, _ settings: [String: String] = [:]
    ) throws -> WorkerProcess {
        let text = "POSTBELL_PROXY=http://\(Canary.proxyLogin)@127.0.0.1:\(proxy.port)\n"
        try IdentityFiles.replace(file(stage), with: Array(text.utf8), mode: 0o600)
        let own = [
            "POSTBELL_PROVIDERS": "fcm", "POSTBELL_LEASE": "10s", "POSTBELL_REQUEST_TIMEOUT": "1s",
        ]
        return try stage.startWorker(
            google.environment.merging(own) { $1 }.merging(settings) { $1 }, arguments: ["--env-file", file(stage)])
    }

    private static func push(_ mood: String, _ name: String, _ stage: Stage) async throws {
        try await stage.run(
            """
            SELECT postbell.device_register('\(name)', 'phone', 'fcm', '\(Stage.topic)',
                '\(mood):\(name)\(Canary.registrationEnd)');
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
            VALUES ('\(name)', 'approval_requested', '\(name)',
                jsonb_build_object('approval_id', '\(Canary.approval)', 'tool_name', '\(Canary.tool)')::text)
            """)
    }

    @Test(arguments: [SIGSEGV, SIGABRT, SIGQUIT], ["", "enable=yes"])
    func aCrashShowsAndLeavesNothing(_ signal: Int32, backtrace: String) async throws {
        try await GoogleStage.on { stage, google in
            let proxy = try ConnectProxy()
            defer { proxy.stop() }
            let worker = try Self.startWorker(stage, google, proxy, ["SWIFT_BACKTRACE": backtrace])
            try await Self.push("ok", "first", stage)
            try await stage.waitFor("first", "dispatched")
            try await Self.push("fa-silence", "second", stage)
            _ = await google.fcm.requests(reaching: 2)
            let limits = try String(contentsOfFile: "/proc/\(worker.identifier)/limits", encoding: .utf8)
            let core = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
            #expect(core?.split(separator: " ").dropFirst(4).prefix(2) == ["0", "0"])
            worker.send(signal)
            #expect(try await worker.end() == -signal)
            let canary = try await Canary(google: google)
            #expect(canary.found(in: worker.errors) == [])
            #expect(!worker.errors.contains("Backtracing") && !worker.errors.contains("Registers"))
            let files = try FileManager.default.contentsOfDirectory(atPath: worker.directory.path)
            #expect(!files.contains { $0.hasPrefix("core") })
        }
    }

    /// Once an access token is there, no part of the key that it was asked for with is in the worker's memory.
    @Test func theKeyIsErasedOnceATokenIsThere() async throws {
        try await GoogleStage.on { stage, google in
            let proxy = try ConnectProxy()
            defer { proxy.stop() }
            let worker = try Self.startWorker(stage, google, proxy)
            try await Self.push("ok", "first", stage)
            try await stage.waitFor("first", "dispatched")
            let canary = try await Canary(google: google)
            let names: Set = ["line of a key", "access token"]
            let texts = canary.texts.filter { names.contains($0.name) }.map { ($0.name, Array($0.text.utf8)) }
            #expect(Set(texts.map(\.0)) == names)
            let numbers = canary.bytes.map { ($0.name, $0.bytes) }
            if let found = try MemoryScan.found(numbers + texts, in: worker.identifier) {
                #expect(geteuid() == 0)
                #expect(found == ["access token"], "what is in use is there, and shows that the search works")
            } else {
                #expect(geteuid() != 0)
            }
            #expect(try await worker.stop() == 0)
        }
    }
}
