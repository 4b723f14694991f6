import Glibc

/// Moments for people: absolute, and how long ago.
enum TimeText {
    /// `text` as PostgreSQL writes a `timestamptz` of whole seconds in UTC (`2026-11-30 02:17:05+00`), and behind it
    /// its distance from `now` (seconds since the Unix epoch); `text` alone when it has another form.
    static func withDistance(_ text: String, now: Int = time(nil)) -> String {
        guard let moment = seconds(text) else { return text }
        return "\(text) (\(distance(now - moment)))"
    }

    /// The distance in its two largest units: `just now`, `12 s ago`, `3 min ago`, `2 h 5 min ago`, `400 d 3 h ago`,
    /// `in 5 s`.
    static func distance(_ seconds: Int) -> String {
        if seconds == 0 { return "just now" }
        let size = abs(seconds)
        let words =
            switch size {
            case ..<60: "\(size) s"
            case ..<3600: "\(size / 60) min"
            case ..<86_400: "\(size / 3600) h" + (size / 60 % 60 > 0 ? " \(size / 60 % 60) min" : "")
            default: "\(size / 86_400) d" + (size / 3600 % 24 > 0 ? " \(size / 3600 % 24) h" : "")
            }
        return seconds < 0 ? "in \(words)" : "\(words) ago"
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
