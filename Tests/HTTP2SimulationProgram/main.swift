import Glibc
import HTTP2Simulation
import Simulation

/// Runs seeds of the HTTP/2 client against servers in memory and says in one line what they came to; or one seed, event
/// by event. Ends with 3 when a rule broke, with 2 for a wrong command line.
///
///     postbell-http2-simulation [--seeds N] [--from N] [--least N] [--fast 1]
///     postbell-http2-simulation --seed N
struct PipeProgram {
    private var seeds: UInt64 = 200
    private var first: UInt64 = 1
    private var single: UInt64?
    /// How often each fault must have struck, for the run to count.
    private var least = 0
    /// Whether the first seed that breaks a rule ends it all, without making it smaller.
    private var isFast = false

    init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            guard let value = rest.popFirst().flatMap(UInt64.init) else { return nil }
            switch option {
            case "--seeds": seeds = value
            case "--from": first = value
            case "--seed": single = value
            case "--least": least = Int(value)
            case "--fast": isFast = value > 0
            default: return nil
            }
        }
    }

    /// Does what was asked for; answers the status to end with.
    func run() -> Int32 {
        if let single { return show(single) }
        var tally = PipeTally()
        let began = ContinuousClock.now
        for seed in first..<first + seeds {
            tally.add(PipeReport.run(seed: seed))
            if isFast, let failure = tally.failures.first {
                print("http2 seed \(failure.seed): \(failure.violation)")
                return 3
            }
        }
        for failure in tally.failures.prefix(3) { explain(failure.seed) }
        for failure in tally.failures.dropFirst(3).prefix(20) { print("  seed \(failure.seed): \(failure.violation)") }
        let rare = tally.rareFaults(below: least)
        print(tally.line(took: began.duration(to: .now)), rare.isEmpty && tally.failures.isEmpty ? "holds" : "broke")
        for fault in rare { print("  \(fault) struck less than \(least) times: not counted as tried") }
        return rare.isEmpty && tally.failures.isEmpty ? 0 : 3
    }

    private func show(_ seed: UInt64) -> Int32 {
        let report = PipeReport.run(seed: seed, PipeOptions(keepsTrace: true))
        for line in report.lines { print(line) }
        print("seed \(seed): \(report.violation?.description ?? "holds"), trace \(String(report.hash, radix: 16))")
        return report.violation == nil ? 0 : 3
    }

    private func explain(_ seed: UInt64) {
        guard let shrinker = PipeShrinker(seed: seed) else { return }
        for line in shrinker.report.lines.suffix(40) { print("  \(line)") }
        print("  \(shrinker.summary)")
    }
}

guard let program = PipeProgram(Array(CommandLine.arguments.dropFirst())) else {
    print("usage: postbell-http2-simulation [--seeds N] [--from N] [--least N] [--fast 1] | --seed N")
    exit(2)
}
exit(program.run())
