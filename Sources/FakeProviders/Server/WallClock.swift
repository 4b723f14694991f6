import Glibc

/// The wall clock of a stand-in: the system's, shifted on request, as if the service's clock and ours differed.
struct WallClock {
    /// Seconds added to the system's time.
    var offset: Int64 = 0

    /// Microseconds since the Unix epoch.
    var microseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return (Int64(time.tv_sec) + offset) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Milliseconds since the Unix epoch.
    var milliseconds: Int64 { microseconds / 1000 }

    /// `microseconds` as RFC 3339 in UTC, for example `2026-03-01T12:00:00.250000Z`.
    static func appendText(_ microseconds: Int64, to line: inout [UInt8]) {
        var seconds = time_t(microseconds / 1_000_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        appendDigits(Int(parts.tm_year) + 1900, 4, to: &line)
        for (value, separator) in [(parts.tm_mon + 1, "-"), (parts.tm_mday, "-"), (parts.tm_hour, "T")] {
            line.append(contentsOf: separator.utf8)
            appendDigits(Int(value), 2, to: &line)
        }
        for value in [parts.tm_min, parts.tm_sec] {
            line.append(UInt8(ascii: ":"))
            appendDigits(Int(value), 2, to: &line)
        }
        line.append(UInt8(ascii: "."))
        appendDigits(Int(microseconds % 1_000_000), 6, to: &line)
        line.append(UInt8(ascii: "Z"))
    }

    private static func appendDigits(_ value: Int, _ count: Int, to line: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            line.append(UInt8(48 + value / divisor % 10))
            divisor /= 10
        }
    }
}
