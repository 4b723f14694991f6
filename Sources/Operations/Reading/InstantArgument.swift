import Glibc
import OutboxCore

/// A moment as people write it on a command line: a date, a date and time, or how long ago.
enum InstantArgument: Equatable {
    /// So long before the database's now: `90m`, `7d`.
    case ago(Duration)
    /// A moment in UTC.
    case at(Timestamp)

    /// The forms, for help and messages.
    static let forms = "2h, 7d, 2026-11-30, or 2026-11-30T14:05:00 (UTC)"

    /// Reads the value of `option`.
    init(_ text: String, option: OptionDescription) throws(CommandFailure) {
        if let duration = try? DurationText.parse(text), duration <= .days(36_500) {
            self = .ago(duration)
        } else if let instant = Self.instant(text) {
            self = .at(instant)
        } else {
            throw CommandFailure(
                .usage, what: "\(option.name) \(QuotedText.quote(text)) is no moment", place: "command line",
                next: "write \(Self.forms)")
        }
    }

    /// The moment, counted from the database's `now`.
    func instant(from now: Timestamp) -> Timestamp {
        switch self {
        case .ago(let duration): now + (.zero - duration)
        case .at(let instant): instant
        }
    }

    private static func instant(_ text: String) -> Timestamp? {
        let body = text.hasSuffix("Z") ? text.dropLast() : text[...]
        let halves = body.split(maxSplits: 1, omittingEmptySubsequences: false) { $0 == "T" || $0 == " " }
        guard let date = numbers(halves[0], separator: "-", digits: [4, 2, 2]) else { return nil }
        var time: [Int32] = [0, 0, 0]
        if halves.count == 2 {
            guard
                let read = numbers(halves[1], separator: ":", digits: [2, 2, 2])
                    ?? numbers(halves[1], separator: ":", digits: [2, 2])
            else { return nil }
            time = read.count == 3 ? read : read + [0]
        } else if body.count < text.count {
            return nil
        }
        guard time[0] < 24, time[1] < 60, time[2] < 60 else { return nil }
        var parts = tm()
        parts.tm_year = date[0] - 1900
        parts.tm_mon = date[1] - 1
        parts.tm_mday = date[2]
        parts.tm_hour = time[0]
        parts.tm_min = time[1]
        parts.tm_sec = time[2]
        let seconds = timegm(&parts)
        // A day that does not exist is moved to one that does.
        guard date[0] >= 1970, parts.tm_mon == date[1] - 1, parts.tm_mday == date[2] else { return nil }
        return Timestamp(microseconds: Int64(seconds) * 1_000_000)
    }

    private static func numbers(_ text: Substring, separator: Character, digits: [Int]) -> [Int32]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        guard parts.map(\.count) == digits, parts.joined().allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        return parts.compactMap { Int32($0) }
    }
}
