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
