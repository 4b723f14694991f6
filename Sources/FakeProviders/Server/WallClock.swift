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

    /// Seconds since the Unix epoch.
    var seconds: Int64 { microseconds / 1_000_000 }

    /// Seconds since the Unix epoch as an HTTP date (RFC 9110 5.6.7), for example `Sun, 01 Mar 2026 12:00:00 GMT`.
    static func httpDate(_ seconds: Int64) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        var text = Array(weekdays[Int(parts.tm_wday)].utf8) + [0x2C, 0x20]
        appendDigits(Int(parts.tm_mday), 2, to: &text)
        text += " \(months[Int(parts.tm_mon)]) ".utf8
        appendDigits(Int(parts.tm_year) + 1900, 4, to: &text)
        for (value, separator) in [(parts.tm_hour, " "), (parts.tm_min, ":"), (parts.tm_sec, ":")] {
            text += separator.utf8
            appendDigits(Int(value), 2, to: &text)
        }
        return String(decoding: text, as: UTF8.self) + " GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func appendDigits(_ value: Int, _ count: Int, to line: inout [UInt8]) {
        var divisor = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            line.append(UInt8(48 + value / divisor % 10))
            divisor /= 10
        }
    }
}
