import Foundation
import Testing

/// The built program `postbell`, run as an operator would.
struct Program {
    /// How a run ended.
    struct Result {
        let status: Int32
        let output: String
        let errors: String
        /// Lines of standard error.
        var lines: [String] { errors.split(separator: "\n").map(String.init) }
    }

    /// Runs the program in an environment of nothing but `environment`, and waits for its end, a minute at most.
    static func run(_ arguments: [String], environment: [String: String] = [:]) throws -> Result {
        try run(arguments, of: executable, environment: environment)
    }

    /// Runs a line of shell in which `$0` is the program, with no other environment.
    static func shell(_ line: String) throws -> Result {
        try run(["-c", line, executable.path], of: URL(filePath: "/bin/sh"), environment: [:])
    }

    private static func run(_ arguments: [String], of file: URL, environment: [String: String]) throws -> Result {
        let process = Process()
        process.executableURL = file
        process.arguments = arguments
        process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { first, _ in first }
        let output = Pipe()
        let errors = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        try process.run()
        let watch = DispatchWorkItem { process.terminate() }
        DispatchQueue.global().asyncAfter(deadline: .now() + 60, execute: watch)
        defer { watch.cancel() }
        let said = read(errors)
        let printed = read(output)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit)
        return Result(status: process.terminationStatus, output: printed, errors: said)
    }

    /// The tests' own program and this one are built into one directory.
    static var executable: URL {
        URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().appending(
            path: "postbell")
    }

    private static func read(_ pipe: Pipe) -> String {
        String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    }
}

/// A file in a directory of its own, gone with its last use.
final class TemporaryFile {
    let path: String
    private let directory: URL

    init(_ content: String) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = directory.appending(path: "postbell.env")
        path = file.path
        try content.write(to: file, atomically: true, encoding: .utf8)
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }
}
