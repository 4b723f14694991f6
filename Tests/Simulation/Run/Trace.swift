/// What happened in a run: always as a hash, and as lines when they are wanted.
package struct Trace {
    /// FNV-1a over all that was noted: the same seed has the same hash.
    package private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    /// What was noted, line by line; empty unless asked for.
    package private(set) var lines: [String] = []
    private let keepsLines: Bool
    /// Events noted.
    package private(set) var count = 0

    /// Nothing is noted yet.
    package init(keepsLines: Bool) {
        self.keepsLines = keepsLines
    }

    /// Notes one event: its time in microseconds, the worker it happened to, what it was, and two figures of it.
    package mutating func note(
        at: Int64, worker: Int, _ what: StaticString, _ first: Int = 0, _ second: Int = 0,
        detail: @autoclosure () -> String = ""
    ) {
        count += 1
        mix(UInt64(truncatingIfNeeded: at))
        mix(UInt64(truncatingIfNeeded: worker))
        what.withUTF8Buffer { for byte in $0 { mix(UInt64(byte)) } }
        mix(UInt64(truncatingIfNeeded: first))
        mix(UInt64(truncatingIfNeeded: second))
        guard keepsLines else { return }
        let seconds = "\(at / 1_000_000).\(String(1_000_000 + at % 1_000_000).dropFirst())"
        let who = worker < 0 ? "   " : "w\(worker + 1) "
        lines.append("\(seconds) \(who)\(what) \(detail())")
    }

    private mutating func mix(_ value: UInt64) {
        hash = (hash ^ value) &* 0x100_0000_01B3
    }
}
