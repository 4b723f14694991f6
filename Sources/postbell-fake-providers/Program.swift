import EventLoop
import FakeProviders
import Glibc

/// From the command line to a running service and back.
enum Program {
    /// Runs until a signal or `--exit-after` ends it. Answers the exit status: 0, 1 for a fault, 64 for a wrong command
    /// line.
    static func run(_ words: [String]) -> Int32 {
        let arguments: Arguments
        do throws(Arguments.Fault) {
            guard let read = try Arguments(words) else {
                say(Arguments.help)
                return 0
            }
            arguments = read
        } catch {
            complain("\(error)\nTry --help.")
            return 64
        }
        let loop = EventLoop()
        let session: Session
        do {
            session = try Session(arguments, on: loop)
        } catch {
            complain("\(error)")
            return 1
        }
        Task(executorPreference: loop) { await session.begin() }
        loop.run()
        return session.status
    }

    /// Writes a line to standard output at once.
    static func say(_ text: String) {
        write(text, to: STDOUT_FILENO)
    }

    /// Writes a line to standard error at once.
    static func complain(_ text: String) {
        write("postbell-fake-providers: " + text, to: STDERR_FILENO)
    }

    private static func write(_ text: String, to descriptor: Int32) {
        let line = Array((text + "\n").utf8)
        _ = Glibc.write(descriptor, line, line.count)
    }
}
