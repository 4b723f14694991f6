import Foundation
import Glibc
import Testing

/// `postbell-fake-providers` as people start it.
@Suite struct FakeProgramTests {
    /// The tests' own program and this one are built into one directory.
    private static let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appending(path: "postbell-fake-providers").path

    private static func directory() throws -> String {
        let path = NSTemporaryDirectory() + "postbell-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    private static let slips: [([String], String)] = [
        ([], "--certificates DIR is needed"),
        (["--certificates", "x", "--wrong"], "unknown option --wrong"),
        (["--certificates", "x", "--listen"], "--listen needs a value"),
        (["--certificates", "x", "--fcm", "here"], "--fcm: here is not HOST:PORT"),
        (["--certificates", "x", "--slowness", "5"], "--slowness: 5 is no duration (500ms, 30s, 5m, 1h)"),
        (["--certificates", "x", "--token-endpoint", "127.0.0.1:0"], "--token-endpoint needs an account"),
        (["--certificates", "x", "--make-account"], "an account is of use to a token endpoint only"),
        (["--certificates", "x", "--make-key", "--apns-key", "y"], "--make-key and --apns-key exclude each other"),
    ]

    @Test(arguments: slips) func `says what is wrong with a command line`(words: [String], complaint: String) throws {
        let (status, output, problem) = try Curl.run(Self.program, words)
        #expect(status == 64)
        #expect(output.isEmpty)
        #expect(problem.hasPrefix("postbell-fake-providers: " + complaint), "\(problem)")
    }

    @Test func `names the line of a scenario that is wrong, before it listens`() throws {
        let directory = try Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let file = directory + "/storm.txt"
        try "apns answer 503\napns answer\n".write(toFile: file, atomically: true, encoding: .utf8)
        let (status, output, problem) = try Curl.run(Self.program, ["--certificates", directory, "--scenario", file])
        #expect(status == 1 && output.isEmpty)
        #expect(problem.hasPrefix("postbell-fake-providers: \(file):2: answer needs a value"), "\(problem)")
    }

    @Test func `reads its scenario again at SIGHUP, and keeps it when the new one is wrong`() throws {
        let directory = try Self.directory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let file = directory + "/storm.txt"
        func write(_ text: String) throws { try text.write(toFile: file, atomically: true, encoding: .utf8) }
        try write("apns answer 503")
        let run = try Run(Self.program, ["--certificates", directory, "--scenario", file, "--no-log"])
        defer { run.kill() }
        let port = try #require(try run.output.line()["port"] as? Int)
        let headers = ["apns-push-type": "alert", "apns-topic": "com.example.app", "authorization": Self.bearer]
        func status() throws -> Int {
            try Curl.send(
                to: "https://localhost:\(port)/3/device/00fc", authority: directory, headers: headers,
                body: "{\"aps\":{}}"
            ).status
        }
        #expect(try status() == 503)
        try write("apns answer 429 TooManyRequests")
        run.signal(SIGHUP)
        #expect(try run.output.line()["event"] as? String == "scenario")
        #expect(try status() == 429)
        try write("apns answer never")
        run.signal(SIGHUP)
        #expect(
            try run.problem.text().contains("storm.txt:1: answer: `never` is no number from 300 to 599; the scenario"))
        #expect(try status() == 429)
        run.signal(SIGTERM)
        let summary = try run.output.line()
        #expect(summary["event"] as? String == "stopped" && summary["requests"] as? Int == 3)
        #expect(run.end() == 0)
    }

    /// An unsigned provider token: without a key each readable one is taken.
    private static let bearer: String = {
        func part(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacingOccurrences(of: "=", with: "")
        }
        let now = Int(Date().timeIntervalSince1970)
        return "bearer " + part("{\"alg\":\"ES256\",\"kid\":\"ABC123DEFG\"}") + "."
            + part("{\"iss\":\"DEF123GHIJ\",\"iat\":\(now)}") + ".AAAA"
    }()
}

/// A program that runs beside the test.
private struct Run {
    /// One of its streams, read line by line.
    struct Lines {
        let pipe = Pipe()

        /// The next line; ends with the stream.
        func text() throws -> String {
            var bytes: [UInt8] = []
            while let byte = try pipe.fileHandleForReading.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
                bytes.append(byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// The next line as a JSON object.
        func line() throws -> [String: Any] {
            let text = try text()
            return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
        }
    }

    let output = Lines()
    let problem = Lines()
    private let process = Process()

    /// Starts it; it stops by itself after a minute, whatever happens to the test.
    init(_ program: String, _ arguments: [String]) throws {
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments + ["--exit-after", "1m"]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output.pipe
        process.standardError = problem.pipe
        try process.run()
    }

    func signal(_ number: Int32) { _ = Glibc.kill(process.processIdentifier, number) }

    func kill() { if process.isRunning { signal(SIGKILL) } }

    func end() -> Int32 {
        process.waitUntilExit()
        return process.terminationStatus
    }
}
