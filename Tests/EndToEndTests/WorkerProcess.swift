import Foundation
import Testing

/// A program of the package in a process of its own, as an operator would run it.
final class WorkerProcess: Sendable {
    private let process: Process
    private let log: URL

    /// Where it runs.
    var directory: URL { log.deletingLastPathComponent() }

    /// Starts `arguments[0]`, a program of the package, with nothing but `environment`. All that it prints goes to a
    /// file, beside which it runs.
    init(_ arguments: [String], environment: [String: String], log: URL) throws {
        self.log = log
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        process = Process()
        // Test bundle and programs are built into one directory.
        let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.executableURL = tests.deletingLastPathComponent().appending(path: arguments[0])
        process.arguments = Array(arguments.dropFirst())
        process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { first, _ in first }
        process.standardInput = FileHandle.nullDevice
        process.currentDirectoryURL = log.deletingLastPathComponent()
        let output = try FileHandle(forWritingTo: log)
        process.standardOutput = output
        process.standardError = output
        try process.run()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    /// What it has logged so far.
    var errors: String { (try? String(contentsOf: log, encoding: .utf8)) ?? "" }

    /// Its process id.
    var identifier: Int32 { process.processIdentifier }

    /// Whether it has not ended.
    var isRunning: Bool { process.isRunning }

    func send(_ signal: Int32) {
        kill(process.processIdentifier, signal)
    }

    /// Waits for its end, half a minute at most, and answers its exit status; a death by a signal is its negative
    /// number.
    func end() async throws -> Int32 {
        try await eventually("the worker ends") { !self.process.isRunning }
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// SIGTERM, and the exit status.
    func stop() async throws -> Int32 {
        send(SIGTERM)
        return try await end()
    }
}

/// Looks again and again whether `condition` holds, half a minute at most; the failure names `what`.
func eventually(
    _ what: String, within limit: Duration = .seconds(30), _ condition: () async throws -> Bool,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let end = ContinuousClock.now + limit
    while ContinuousClock.now < end {
        if try await condition() { return }
        try await Task.sleep(for: .milliseconds(20))
    }
    try #require(Bool(false), "not within \(limit): \(what)", sourceLocation: sourceLocation)
}
