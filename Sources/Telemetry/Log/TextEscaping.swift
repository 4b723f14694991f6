/// Escapes text so that it stays on its line, ends at its quote and cannot steer a terminal. The escapes are JSON's
/// (RFC 8259, section 7), in logfmt too.
package enum TextEscaping {
    /// The whole of `text` as a JSON string, quotes included.
    package static func quoted(_ text: String) -> String {
        var line = [UInt8(ascii: "\"")]
        append(text, limit: .max, to: &line)
        line.append(UInt8(ascii: "\""))
        return String(decoding: line, as: UTF8.self)
    }

    /// Whether logfmt must put quotes around `text`.
    static func needsQuotes(_ text: String) -> Bool {
        text.isEmpty
            || text.unicodeScalars.contains { scalar in
                scalar == " " || scalar == "=" || scalar == "\"" || scalar == "\\" || isSteering(scalar)
            }
    }

    /// Appends `text`; what is longer than `limit` bytes is cut at a character and ends with `…`.
    static func append(_ text: String, limit: Int, to line: inout [UInt8]) {
        var length = 0
        for scalar in text.unicodeScalars {
            length += UTF8.width(scalar)
            if length > limit {
                line.append(contentsOf: "…".utf8)
                return
            }
            append(scalar, to: &line)
        }
    }

    private static func append(_ scalar: Unicode.Scalar, to line: inout [UInt8]) {
        switch scalar {
        case "\"": line.append(contentsOf: #"\""#.utf8)
        case "\\": line.append(contentsOf: #"\\"#.utf8)
        case "\n": line.append(contentsOf: #"\n"#.utf8)
        case "\r": line.append(contentsOf: #"\r"#.utf8)
        case "\t": line.append(contentsOf: #"\t"#.utf8)
        case _ where isSteering(scalar): appendCode(scalar.value, to: &line)
        default: line.append(contentsOf: Unicode.UTF8.encode(scalar) ?? Unicode.UTF8.encodedReplacementCharacter)
        }
    }

    /// Control characters (C0, DEL, C1), line and paragraph separators, and the marks that reorder text (Unicode's
    /// Bidi_Control), all of them below U+10000.
    private static func isSteering(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: true
        default: false
        }
    }

    private static func appendCode(_ code: UInt32, to line: inout [UInt8]) {
        line.append(contentsOf: #"\u"#.utf8)
        let digits = Array("0123456789abcdef".utf8)
        for shift in [12, 8, 4, 0] as [UInt32] {
            line.append(digits[Int(code >> shift & 0xF)])
        }
    }
}
