import Foundation
import Testing

/// The built program while it runs: its log is read line by line, and it can be told to stop.
final class RunningProgram {
    private let process = Process()
    private let errors = Pipe()
    private var unread: [UInt8] = []
    /// What it has written to standard error so far.
    private(set) var lines: [String] = []

    /// Starts the program in an environment of nothing but `environment`. It is ended after a minute at the latest.
    init(_ arguments: [String], environment: [String: String], by executable: URL = Program.executable) throws {
        process.executableURL = executable
        process.arguments = arguments
        process.environment = environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { first, _ in first }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = errors
        try process.run()
        let identifier = process.processIdentifier
        DispatchQueue.global().asyncAfter(deadline: .now() + 60) { [weak process] in
            if process?.isRunning == true { kill(identifier, SIGKILL) }
        }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    /// Reads on until a line contains `text`, and returns that line; nil when the program ends before.
    func line(containing text: String) -> String? {
        if let line = lines.first(where: { $0.contains(text) }) { return line }
        while let line = nextLine() {
            if line.contains(text) { return line }
        }
        return nil
    }

    /// Where one of its descriptors leads.
    func target(ofDescriptor descriptor: Int) throws -> String {
        try FileManager.default.destinationOfSymbolicLink(
            atPath: "/proc/\(process.processIdentifier)/fd/\(descriptor)")
    }

    /// Asks it to stop.
    func terminate() {
        process.terminate()
    }

    /// Reads on to its end, and returns its status.
    func end() -> Int32 {
        while nextLine() != nil {}
        process.waitUntilExit()
        #expect(process.terminationReason == .exit, "\(lines)")
        return process.terminationStatus
    }

    private func nextLine() -> String? {
        while !unread.contains(UInt8(ascii: "\n")) {
            // Waits until something is written, or the other end is closed.
            let more = errors.fileHandleForReading.availableData
            if more.isEmpty { return nil }
            unread += more
        }
        guard let end = unread.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let line = String(decoding: unread[..<end], as: UTF8.self)
        unread.removeFirst(end + 1)
        lines.append(line)
        return line
    }
}
