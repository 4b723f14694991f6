import Glibc
import Synchronization

/// What the process has used up to a moment.
struct Usage: Sendable {
    let instant: ContinuousClock.Instant
    /// User and system time in seconds.
    let cpuSeconds: Double
    /// Largest resident size in kilobytes.
    let maxResident: Int

    /// As the kernel counts it now.
    static var now: Usage {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let user = Double(usage.ru_utime.tv_sec) + Double(usage.ru_utime.tv_usec) / 1e6
        let system = Double(usage.ru_stime.tv_sec) + Double(usage.ru_stime.tv_usec) / 1e6
        return Usage(instant: .now, cpuSeconds: user + system, maxResident: usage.ru_maxrss)
    }
}

/// What a run came to; written on the loop, read by the main thread when the loop has ended.
final class OutcomeBox: Sendable {
    private struct Outcome {
        var start: Usage
        var end: Usage
        var ended: Int
        var failures: Int
        var firstFailure: String?
    }

    private let outcome = Mutex<Outcome?>(nil)

    func set(start: Usage, end: Usage, ended: Int, failures: Int, firstFailure: String?) {
        outcome.withLock {
            $0 = Outcome(start: start, end: end, ended: ended, failures: failures, firstFailure: firstFailure)
        }
    }

    /// Prints the figures; 0 if every request had the answer that was expected.
    func report(_ options: SendOptions) -> Int32 {
        guard let outcome = outcome.withLock({ $0 }) else { return 1 }
        let failures = outcome.failures + options.requests - outcome.ended
        let cpu = outcome.end.cpuSeconds - outcome.start.cpuSeconds
        let wall = (outcome.end.instant - outcome.start.instant) / Duration.seconds(1)
        let perRequest = cpu / Double(max(1, outcome.ended)) * 1e6
        print(
            "{\"requests\":\(outcome.ended),\"failures\":\(failures),\"streams\":\(options.streams)",
            "\"cpu_seconds\":\(rounded(cpu))", "\"cpu_us_per_request\":\(rounded(perRequest))",
            "\"wall_seconds\":\(rounded(wall))", "\"requests_per_second\":\(Int(Double(outcome.ended) / wall))",
            "\"max_rss_kb\":\(outcome.end.maxResident)}", separator: ",")
        if let first = outcome.firstFailure { BenchCommand.complain("first failure: \(first)\n") }
        return failures == 0 ? 0 : 1
    }

    private func rounded(_ number: Double) -> Double {
        (number * 1000).rounded() / 1000
    }
}
