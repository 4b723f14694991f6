import EventLoop
import Glibc

/// The commands of `postbell-bench`.
enum BenchCommand {
    static let usage = """
        usage: postbell-bench send --url https://HOST:PORT [--ca FILE] [--streams N] [--requests N]
                                   [--body-bytes N] [--status N] [--timeout-seconds N]

        Sends APNs-like requests through the HTTP/2 client alone and prints one line of JSON. The exit status is 1 when
        any request had no answer with the expected status (200, or what --status says).

        """

    /// Writes `text` to standard error, all of it or what fits; nobody could be told otherwise.
    static func complain(_ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// Runs the command that `arguments` name; answers the exit status.
    static func run(_ arguments: [String]) -> Int32 {
        guard arguments.first == "send", let options = SendOptions(Array(arguments.dropFirst())) else {
            complain(usage)
            return 64
        }
        let loop = EventLoop(workers: 1)
        let bench = SendBench(options, on: loop)
        let deadline = ContinuousClock.now + options.timeout
        Task(executorPreference: loop) {
            await bench.run(until: deadline)
            loop.stop()
        }
        loop.run()
        return bench.report()
    }
}

/// What `postbell-bench send` was asked for.
struct SendOptions: Sendable {
    var host = ""
    var port: UInt16 = 443
    var caFile: String?
    var streams = 100
    var requests = 200_000
    var bodyBytes = 250
    var status = 200
    var timeout = Duration.seconds(300)

    /// Reads pairs of option and value; nil for anything that is not understood.
    init?(_ arguments: [String]) {
        guard arguments.count.isMultiple(of: 2) else { return nil }
        for index in stride(from: 0, to: arguments.count, by: 2) {
            guard set(arguments[index], arguments[index + 1]) else { return nil }
        }
        guard !host.isEmpty, streams > 0, requests > 0, bodyBytes >= 0 else { return nil }
    }

    private mutating func set(_ name: String, _ value: String) -> Bool {
        if name == "--url" { return setURL(value) }
        if name == "--ca" {
            caFile = value
            return true
        }
        guard let number = Int(value) else { return false }
        switch name {
        case "--streams": streams = number
        case "--requests": requests = number
        case "--body-bytes": bodyBytes = number
        case "--status": status = number
        case "--timeout-seconds": timeout = .seconds(number)
        default: return false
        }
        return true
    }

    private mutating func setURL(_ url: String) -> Bool {
        let scheme = "https://"
        guard url.hasPrefix(scheme) else { return false }
        let authority = url.dropFirst(scheme.count).prefix { $0 != "/" }
        let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
        guard let name = parts.first, parts.count <= 2 else { return false }
        host = String(name)
        if parts.count == 2 {
            guard let number = UInt16(parts[1]) else { return false }
            port = number
        }
        return true
    }
}
