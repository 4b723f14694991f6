/// A text with places for payload values, as a kind declares it: `Allow {tool_name}?`.
package struct TemplateText: Equatable, Sendable {
    /// A piece of the text.
    package enum Piece: Equatable, Sendable {
        /// Text that is always the same.
        case literal([UInt8])
        /// The value of this payload key; nothing where the key is absent.
        case value(String)
    }

    /// The pieces in order.
    package let pieces: [Piece]

    /// Reads the catalog's form: `{key}` stands for a value, `{{` and `}}` for the braces themselves. Nil when a brace
    /// is left open or a key is empty; `define_kind` has refused such texts and undeclared keys.
    package init?(_ source: String) {
        var pieces: [Piece] = []
        var literal: [UInt8] = []
        var bytes = Array(source.utf8)[...]
        while let byte = bytes.popFirst() {
            if byte == UInt8(ascii: "}") {
                guard bytes.popFirst() == byte else { return nil }
                literal.append(byte)
            } else if byte != UInt8(ascii: "{") {
                literal.append(byte)
            } else if bytes.first == byte {
                literal.append(byte)
                bytes.removeFirst()
            } else {
                guard let end = bytes.firstIndex(of: UInt8(ascii: "}")), end > bytes.startIndex else { return nil }
                if !literal.isEmpty { pieces.append(.literal(literal)) }
                literal = []
                pieces.append(.value(String(decoding: bytes[..<end], as: UTF8.self)))
                bytes = bytes[(end + 1)...]
            }
        }
        if !literal.isEmpty { pieces.append(.literal(literal)) }
        self.pieces = pieces
    }

    /// Appends the text with its values as **JSON string content**: escaped, without the quotes around it.
    package func append(to output: inout [UInt8], payload: PayloadReader, text: [UInt8]) {
        for piece in pieces {
            switch piece {
            case .literal(let bytes):
                JSONText.appendEscaped(bytes[...], to: &output)
            case .value(let key):
                guard let field = payload.field(key, in: text) else { continue }
                // A JSON string's inside is JSON string content already; numbers and words need no escape.
                output.append(contentsOf: field.isString ? text[field.value].dropFirst().dropLast() : text[field.value])
            }
        }
    }
}

/// The texts of a `template` kind.
package struct Template: Equatable, Sendable {
    /// First line; nil for none.
    package let title: TemplateText?
    /// Second line; nil for none.
    package let subtitle: TemplateText?
    /// The text itself; nil for none.
    package let body: TemplateText?

    /// The texts as the catalog declares them.
    package init(title: TemplateText?, subtitle: TemplateText? = nil, body: TemplateText? = nil) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
    }
}

/// Writing JSON by bytes.
package enum JSONText {
    /// Appends UTF-8 `bytes` as the content of a JSON string (RFC 8259 7): only what must be escaped is, so that the
    /// byte count stays the true one.
    package static func appendEscaped(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
        for byte in bytes { append(byte, to: &output) }
    }

    /// Appends a text in the same way. Concrete types twice, because a generic function that is called per push across
    /// modules is not specialised.
    package static func appendEscaped(_ text: String, to output: inout [UInt8]) {
        for byte in text.utf8 { append(byte, to: &output) }
    }

    private static func append(_ byte: UInt8, to output: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            output.append(UInt8(ascii: "\\"))
            output.append(byte)
        case 0x0A:
            output.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "n")])
        case 0..<0x20:
            output.append(contentsOf: "\\u00".utf8)
            output.append(hexDigit(byte >> 4))
            output.append(hexDigit(byte & 0xF))
        default:
            output.append(byte)
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
