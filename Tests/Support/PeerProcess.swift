import Foundation
import Glibc
import Synchronization

/// A program that runs beside a test, whose output is read line by line.
package final class PeerProcess {
    /// Lines that were read and not asked for yet. Read at once, so that the program never waits for its reader.
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])
        private let news = DispatchSemaphore(value: 0)

        func read(_ output: FileHandle) {
            var rest: [UInt8] = []
            while case let data = output.availableData, !data.isEmpty {
                rest += Array(data)
                while let end = rest.firstIndex(of: 10) {
                    let line = String(decoding: rest[..<end], as: UTF8.self)
                    rest.removeFirst(end + 1)
                    lines.withLock { $0.append(line) }
                    news.signal()
                }
            }
            // One signal without a line: the end.
            news.signal()
        }

        /// The next line; nil after the last one, or when none came for two minutes.
        func next() -> String? {
            guard news.wait(timeout: .now() + 120) == .success else { return nil }
            return lines.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }
    }

    private let process = Process()
    private let input = Pipe()
    private let lines = Lines()

    /// Starts `program`, which ends by itself when nothing happens for long.
    package init(_ program: String, _ arguments: [String]) throws {
        let output = Pipe()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        Thread.detachNewThread { [lines] in lines.read(output.fileHandleForReading) }
    }

    /// Writes a line to its standard input.
    package func write(_ line: String) throws {
        try input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    /// Ends its standard input, for a program that waits for that.
    package func endInput() throws {
        try input.fileHandleForWriting.close()
    }

    /// The next line; throws after the last one.
    package func nextLine() throws -> String {
        guard let line = lines.next() else { throw TestSetupError("the peer has nothing more to say") }
        return line
    }

    /// Its exit status, or the signal that ended it, once it has ended.
    package func exitStatus() -> Int32 {
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Ends it. Not by SIGTERM, which a child inherits as blocked when it was started from some of the threads here.
    package func end() {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
