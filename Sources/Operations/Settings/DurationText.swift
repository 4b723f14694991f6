/// Durations as operators write them: a whole number and a unit, `250ms`, `30s`, `2m`, `1h`, `30d`.
package enum DurationText {
    private static let units: [(suffix: String, milliseconds: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    static func parse(_ text: String) throws(ValueFault) -> Duration {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let suffix = text.dropFirst(digits.count)
        guard !digits.isEmpty else { throw ValueFault("is not a duration") }
        if suffix.isEmpty { throw ValueFault("is a number without a unit") }
        if suffix.first == "." || suffix.first == "," { throw ValueFault("is not a whole number with a unit") }
        guard let unit = units.first(where: { $0.suffix == suffix }) else {
            throw ValueFault("has an unknown unit (known are ms, s, m, h, d)")
        }
        // Ten digits of days are still far within what the arithmetic below can hold.
        guard digits.count <= 10, let number = Int64(digits) else { throw ValueFault("is too long") }
        return .milliseconds(number * unit.milliseconds)
    }

    /// The shortest exact form with one unit: 90 s is `90s`, 120 s is `2m`, zero `0s`. What is finer than a
    /// millisecond is cut off.
    package static func format(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
        if milliseconds == 0 { return "0s" }
        for unit in units where milliseconds % unit.milliseconds == 0 {
            return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
        }
        return "\(milliseconds)ms"
    }
}

extension DurationText {
    /// A measured duration for people, in whole milliseconds.
    static func milliseconds(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        return "\(seconds * 1000 + attoseconds / 1_000_000_000_000_000) ms"
    }

    /// A measured duration for people, in whole seconds.
    static func seconds(_ duration: Duration) -> String {
        "\(duration.components.seconds) s"
    }
}
