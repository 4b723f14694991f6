import Glibc
import OutboxCore

/// Moments for people: absolute, and how long ago.
enum TimeText {
    /// `text` as PostgreSQL writes a `timestamptz` of whole seconds in UTC (`2026-11-30 02:17:05+00`), and behind it
    /// its distance from `now` (seconds since the Unix epoch); `text` alone when it has another form.
    static func withDistance(_ text: String, now: Int = time(nil)) -> String {
        guard let moment = seconds(text) else { return text }
        return "\(text) (\(distance(now - moment)))"
    }

    /// An instant of the database's clock to the second, in UTC: `2026-11-30 02:17:05+00`.
    static func absolute(_ instant: Timestamp) -> String {
        let parts = calendar(instant)
        return "\(padded(parts.tm_year + 1900, 4))-\(padded(parts.tm_mon + 1))-\(padded(parts.tm_mday)) "
            + "\(padded(parts.tm_hour)):\(padded(parts.tm_min)):\(padded(parts.tm_sec))+00"
    }

    /// An instant in UTC as RFC 3339 has it, to the microsecond, for programs: `2026-11-30T02:17:05.000001Z`.
    static func precise(_ instant: Timestamp) -> String {
        let fraction = ((instant.microseconds % 1_000_000) + 1_000_000) % 1_000_000
        let text = absolute(instant).dropLast(3).map { $0 == " " ? "T" : $0 }
        return "\(String(text)).\(padded(Int32(fraction), 6))Z"
    }

    /// An instant, and behind it its distance from `now`, by the database's clock.
    static func withDistance(_ instant: Timestamp, now: Timestamp) -> String {
        "\(absolute(instant)) (\(distance(from: instant, to: now)))"
    }

    /// How long before `now` an instant is, in words.
    static func distance(from instant: Timestamp, to now: Timestamp) -> String {
        distance(seconds(now) - seconds(instant))
    }

    /// A length of time in its two largest units, `12 ms` below a second.
    static func length(_ duration: Duration) -> String {
        let microseconds = max(0, duration.wholeMicroseconds)
        if microseconds < 10_000 { return "\(microseconds / 1000).\(microseconds / 100 % 10) ms" }
        if microseconds < 1_000_000 { return "\(microseconds / 1000) ms" }
        return words(Int(microseconds / 1_000_000))
    }

    /// The distance in its two largest units: `just now`, `12 s ago`, `3 min ago`, `2 h 5 min ago`, `400 d 3 h ago`,
    /// `in 5 s`.
    static func distance(_ seconds: Int) -> String {
        if seconds == 0 { return "just now" }
        return seconds < 0 ? "in \(words(-seconds))" : "\(words(seconds)) ago"
    }

    private static func words(_ size: Int) -> String {
        switch size {
        case ..<60: "\(size) s"
        case ..<3600: "\(size / 60) min"
        case ..<86_400: "\(size / 3600) h" + (size / 60 % 60 > 0 ? " \(size / 60 % 60) min" : "")
        default: "\(size / 86_400) d" + (size / 3600 % 24 > 0 ? " \(size / 3600 % 24) h" : "")
        }
    }

    /// Whole seconds since the Unix epoch, rounded down.
    private static func seconds(_ instant: Timestamp) -> Int {
        Int((Double(instant.microseconds) / 1_000_000).rounded(.down))
    }

    private static func calendar(_ instant: Timestamp) -> tm {
        var moment = time_t(seconds(instant))
        var parts = tm()
        gmtime_r(&moment, &parts)
        return parts
    }

    private static func padded(_ number: Int32, _ width: Int = 2) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    private static func seconds(_ text: String) -> Int? {
        guard text.hasSuffix("+00") else { return nil }
        let numbers = text.dropLast(3).split { "- :".contains($0) }.map { Int32($0) ?? -1 }
        guard numbers.count == 6, numbers.allSatisfy({ $0 >= 0 }) else { return nil }
        var parts = tm()
        parts.tm_year = numbers[0] - 1900
        parts.tm_mon = numbers[1] - 1
        parts.tm_mday = numbers[2]
        parts.tm_hour = numbers[3]
        parts.tm_min = numbers[4]
        parts.tm_sec = numbers[5]
        return timegm(&parts)
    }
}
