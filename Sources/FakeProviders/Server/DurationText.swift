/// Durations as people write them: a number with its unit.
package enum DurationText {
    /// What is allowed, for complaints.
    package static let forms = "500ms, 30s, 5m, 1h"

    /// The duration that `text` says; nil when it is none.
    package static func parse(_ text: some StringProtocol) -> Duration? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard digits.count <= 9, let number = Int64(digits) else { return nil }
        switch text.dropFirst(digits.count) {
        case "ms": return .milliseconds(number)
        case "s": return .seconds(number)
        case "m": return .seconds(number * 60)
        case "h": return .seconds(number * 3600)
        default: return nil
        }
    }
}
