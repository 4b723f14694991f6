import Telemetry

/// A JSON value on its way to an output.
enum JSONText {
    case null
    case bool(Bool)
    case int(Int)
    case string(String)
    case array([JSONText])
    /// In the order in which it is written.
    case object([(String, JSONText)])

    /// A string, or null.
    static func string(_ text: String?) -> JSONText { text.map(JSONText.string) ?? .null }

    /// The text on one line.
    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): String(value)
        case .int(let value): String(value)
        case .string(let value): TextEscaping.quoted(value)
        case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { TextEscaping.quoted($0.0) + ":" + $0.1.text }.joined(separator: ",") + "}"
        }
    }
}
