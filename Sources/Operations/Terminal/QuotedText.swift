/// Text of unknown origin as it may appear in a message: on one line, bounded, unable to steer a terminal.
enum QuotedText {
    private static let longest = 60

    /// `text` in quotes.
    static func quote(_ text: String) -> String {
        "\"" + escape(text) + "\""
    }

    /// `text` without quotes.
    static func escape(_ text: String) -> String {
        let shown = line(String(String.UnicodeScalarView(text.unicodeScalars.prefix(longest))))
        return text.unicodeScalars.count > longest ? shown + "…" : shown
    }

    /// `text` of any length on one line.
    static func line(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
                shown += "\\u{" + String(scalar.value, radix: 16) + "}"
            default:
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}
