/// The value of one name in a log line.
package enum LogValue: Sendable, Equatable {
    /// A whole number.
    case int(Int)
    /// Text of any origin; the line escapes what could break it or fool a terminal, and bounds its length.
    case text(String)
    /// Written in milliseconds, to the microsecond, under the name with the suffix `_ms`.
    case duration(Duration)
    /// `true` or `false`.
    case flag(Bool)
}

extension LogValue: ExpressibleByIntegerLiteral, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
    ExpressibleByBooleanLiteral
{
    /// A whole number.
    package init(integerLiteral value: Int) { self = .int(value) }
    /// Text.
    package init(stringLiteral value: String) { self = .text(value) }
    /// True or false.
    package init(booleanLiteral value: Bool) { self = .flag(value) }
}

/// The names and values of a line, in the order they were written in: `[.rows: .int(12), .took: .duration(elapsed)]`.
package struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
    private(set) var pairs: [(key: LogKey, value: LogValue)]

    /// The fields as they are written in the source.
    package init(dictionaryLiteral elements: (LogKey, LogValue)...) {
        pairs = elements.map { (key: $0.0, value: $0.1) }
    }

    /// These fields, and behind them the others.
    package static func + (fields: LogFields, others: LogFields) -> LogFields {
        var sum = fields
        sum.pairs += others.pairs
        return sum
    }

    /// Adds a field behind the others, unless `value` is nil.
    package mutating func append(_ key: LogKey, _ value: LogValue?) {
        if let value { pairs.append((key, value)) }
    }
}
