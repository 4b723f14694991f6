import Foundation
import Testing

/// A program that was run to its end.
struct CommandRun {
    let status: Int32
    let output: String
    let errors: String

    /// Runs a program of the package (one without a slash in its name) or of the system, half a minute at most.
    static func of(
        _ program: String, _ arguments: [String], environment: [String: String], in directory: URL
    ) async throws -> CommandRun {
        let process = Process()
        let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.executableURL =
            program.contains("/") ? URL(filePath: program) : tests.deletingLastPathComponent().appending(path: program)
        process.arguments = arguments
        process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { first, _ in first }
        process.standardInput = FileHandle.nullDevice
        // Files take everything; a pipe that nobody reads would not.
        let (output, errors) = (directory.appending(path: "\(UUID()).out"), directory.appending(path: "\(UUID()).err"))
        for file in [output, errors] { _ = FileManager.default.createFile(atPath: file.path, contents: nil) }
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: errors)
        try process.run()
        let identifier = process.processIdentifier
        do {
            try await eventually("\(program) \(arguments.first ?? "") ends") { !process.isRunning }
        } catch {
            kill(identifier, SIGKILL)
            throw error
        }
        try #require(process.terminationReason == .exit, "\(program) was ended by a signal")
        return CommandRun(
            status: process.terminationStatus, output: try String(contentsOf: output, encoding: .utf8),
            errors: try String(contentsOf: errors, encoding: .utf8))
    }

    /// Lines of standard output that begin with `start`.
    func lines(_ start: String) -> [String] {
        output.split(separator: "\n").map(String.init).filter { $0.hasPrefix(start) }
    }
}
