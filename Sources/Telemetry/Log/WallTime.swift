import Glibc

/// A moment of the wall clock, for people to read: nothing is ever measured or decided by it.
package struct WallTime: Sendable, Equatable {
    /// Whole seconds since the Unix epoch.
    package let seconds: Int
    /// Milliseconds within the second.
    package let milliseconds: Int

    /// The moment `seconds` and `milliseconds` after the Unix epoch.
    package init(seconds: Int, milliseconds: Int) {
        precondition(0..<1000 ~= milliseconds, "milliseconds are a part of a second")
        self.seconds = seconds
        self.milliseconds = milliseconds
    }

    /// This moment.
    package static func now() -> WallTime {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return WallTime(seconds: time.tv_sec, milliseconds: time.tv_nsec / 1_000_000)
    }

    /// The moment in UTC as RFC 3339 has it, to the millisecond.
    package var text: String {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the moment in UTC as RFC 3339 has it, for example `2026-11-30T01:51:37.042Z`.
    func append(to line: inout [UInt8]) {
        var moment = time_t(seconds)
        var parts = tm()
        gmtime_r(&moment, &parts)
        line.append(digits: Int(parts.tm_year) + 1900, count: 4)
        line.append(UInt8(ascii: "-"))
        line.append(digits: Int(parts.tm_mon) + 1, count: 2)
        line.append(UInt8(ascii: "-"))
        line.append(digits: Int(parts.tm_mday), count: 2)
        line.append(UInt8(ascii: "T"))
        line.append(digits: Int(parts.tm_hour), count: 2)
        line.append(UInt8(ascii: ":"))
        line.append(digits: Int(parts.tm_min), count: 2)
        line.append(UInt8(ascii: ":"))
        line.append(digits: Int(parts.tm_sec), count: 2)
        line.append(UInt8(ascii: "."))
        line.append(digits: milliseconds, count: 3)
        line.append(UInt8(ascii: "Z"))
    }
}

extension [UInt8] {
    /// Appends the last `count` decimal digits of a number that is not negative.
    mutating func append(digits number: Int, count: Int) {
        var divisor = 1
        for _ in 1..<count { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
            divisor /= 10
        }
    }

    /// Appends a number in decimal.
    mutating func append(decimal number: Int) {
        append(contentsOf: String(number).utf8)
    }
}
