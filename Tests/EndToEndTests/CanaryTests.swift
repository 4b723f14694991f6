import FakeProviders
import Foundation
import Support
import Testing

/// A key, tokens of devices and values of payloads go through a worker that has every kind of trouble; none of them
/// comes out anywhere but where it belongs.
@Suite(.serialized, .timeLimit(.minutes(5))) struct CanaryTests {
    private static let levels = ["debug", "info", "notice", "warning", "error"]
    private static let patience = [
        "POSTBELL_LEASE": "10s", "POSTBELL_REQUEST_TIMEOUT": "1s",
    ]
    /// The fake's moods, by what a token begins with: accepted, bad, dead, failing once, reset, and never answered.
    private static let moods = ["0a", "fa400a", "fa410a", "fa5001", "fa0011", "fa0001"]

    @Test func noLogAtAnyLevelHoldsACanary() async throws {
        try await Stage.on(.postgres15) { stage in
            var logs = ""
            for (number, level) in Self.levels.enumerated() {
                for format in ["logfmt", "json"] {
                    let worker = try stage.startWorker(
                        Self.patience.merging(["POSTBELL_LOG_LEVEL": level, "POSTBELL_LOG_FORMAT": format]) { $1 })
                    try await Self.trouble(worker, on: stage, round: "\(number)\(format.prefix(1))")
                    let canary = try await Self.canary(of: stage)
                    let identifier = worker.identifier
                    for file in ["environ", "cmdline"] {
                        let text = (try? Data(contentsOf: URL(filePath: "/proc/\(identifier)/\(file)"))) ?? Data()
                        #expect(canary.found(in: String(decoding: text, as: UTF8.self)) == [])
                    }
                    #expect(try await worker.stop() == 0)
                    #expect(canary.found(in: worker.errors) == [], "\(level), \(format)")
                    logs += worker.errors
                }
            }
            // The worker has spoken of all that, so there was something to leave out.
            for words in ["settled", "no provider token can be made", "InvalidProviderToken"] {
                #expect(logs.contains(words), "\(words)")
            }
            let places = try await Self.canary(of: stage).found(in: stage)
            #expect(
                places == ["devices.token: device token", "outbox.payload: tool", "outbox.payload: approval"])
        }
    }

    /// Everything that a provider, an operator and a network do to a worker.
    private static func trouble(_ worker: WorkerProcess, on stage: Stage, round: String) async throws {
        for (place, mood) in moods.enumerated() {
            try await push(mood, to: "p\(round)\(place)", key: "k\(round)\(place)", on: stage)
        }
        for place in moods.indices {
            try await eventually("\(moods[place]) has an answer") {
                try await !stage.outcomes("k\(round)\(place)").isEmpty
            }
        }
        // Refused as from a wrong key: the lane pauses. A file that holds no key is then no help, the right one is.
        try await push("fa4031", to: "q\(round)", key: "q\(round)", on: stage)
        try await eventually("the key is refused") { try await stage.outcomes("q\(round)") == ["misconfigured"] }
        let key = try String(contentsOfFile: stage.keyFile, encoding: .utf8)
        try IdentityFiles.replace(stage.keyFile, with: Array(Canary.wrongKey.utf8), mode: 0o600)
        worker.send(SIGHUP)
        try await eventually("the wrong key is told of") { worker.errors.contains("no provider token can be made") }
        try IdentityFiles.replace(stage.keyFile, with: Array(key.utf8), mode: 0o600)
        worker.send(SIGHUP)
        try await push("0b", to: "r\(round)", key: "r\(round)", on: stage)
        try await stage.waitFor("r\(round)", "dispatched")
    }

    private static func push(_ mood: String, to person: String, key: String, on stage: Stage) async throws {
        let middle = String(person.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF_FFFF }, radix: 16)
        let begin = mood + String(repeating: "0", count: 64 - mood.count - middle.count - Canary.tokenEnd.count)
        try await stage.run(
            """
            SELECT postbell.device_register('\(person)', 'phone', 'apns', '\(Stage.topic)',
                '\(begin + middle + Canary.tokenEnd)', environment => 'sandbox');
            INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
            VALUES ('\(person)', 'approval_requested', '\(key)',
                jsonb_build_object('approval_id', '\(Canary.approval)', 'tool_name', '\(Canary.tool)')::text)
            """)
    }

    private static func canary(of stage: Stage) async throws -> Canary {
        let bearers = await Set(stage.apns.requests.compactMap { $0.headers["authorization"] })
        try #require(!bearers.isEmpty)
        return try Canary(keyFile: stage.keyFile, bearers: bearers)
    }

    /// A worker that dies says nothing but what it had to say anyway, and leaves nothing: also where somebody has asked
    /// for backtraces, which show what registers point to.
    @Test(arguments: [SIGSEGV, SIGABRT, SIGQUIT], ["", "enable=yes"])
    func aCrashShowsAndLeavesNothing(_ signal: Int32, backtrace: String) async throws {
        try await Stage.on(.postgres15) { stage in
            let worker = try stage.startWorker(["SWIFT_BACKTRACE": backtrace])
            try await Self.push("0a", to: "p", key: "k", on: stage)
            try await stage.waitFor("k", "dispatched")
            try await Self.push("fa000a", to: "q", key: "q", on: stage)
            _ = await stage.apns.requests(reaching: 2)
            let limits = try String(contentsOfFile: "/proc/\(worker.identifier)/limits", encoding: .utf8)
            let core = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
            #expect(core?.split(separator: " ").dropFirst(4).prefix(2) == ["0", "0"])
            worker.send(signal)
            #expect(try await worker.end() == -signal)
            let canary = try await Self.canary(of: stage)
            #expect(canary.found(in: worker.errors) == [])
            #expect(!worker.errors.contains("Backtracing") && !worker.errors.contains("Registers"))
            let files = try FileManager.default.contentsOfDirectory(atPath: worker.directory.path)
            #expect(!files.contains { $0.hasPrefix("core") })
        }
    }

    /// Between two signatures no part of the key is in the worker's memory, and nobody but root may look for it.
    @Test func theKeyIsErasedOnceATokenIsMade() async throws {
        try await Stage.on(.postgres15) { stage in
            let worker = try stage.startWorker()
            try await Self.push("0a", to: "p", key: "k", on: stage)
            try await stage.waitFor("k", "dispatched")
            let canary = try await Self.canary(of: stage)
            let bearer = canary.texts.first { $0.name == "provider token" }.map { ($0.name, Array($0.text.utf8)) }
            let lines = canary.texts.filter { $0.name == "line of a key" }.map { ($0.name, Array($0.text.utf8)) }
            let secrets = canary.bytes.map { ($0.name, $0.bytes) } + lines
            if let found = try MemoryScan.found(secrets + [try #require(bearer)], in: worker.identifier) {
                #expect(geteuid() == 0)
                #expect(found == ["provider token"], "what is in use is there, and shows that the search works")
            } else {
                #expect(geteuid() != 0)
            }
            #expect(try await worker.stop() == 0)
        }
    }
}
