/// A text with places for payload values, as a kind declares it: `Allow {tool_name}?`.
package struct TemplateText: Equatable, Sendable {
    /// A piece of the text.
    package enum Piece: Equatable, Sendable {
        /// Text that is always the same, as JSON string content.
        case literal([UInt8])
        /// The value of this payload key; nothing where the key is absent.
        case value(String)
        /// The label of this payload key's value.
        case label(String, LabelMap)
    }

    /// The pieces in order.
    package let pieces: [Piece]

    /// Reads the catalog's form: `{key}` stands for a value, or for its label where `labels` has the key; `{{` and `}}`
    /// for the braces themselves. Nil when a brace is left open or a key is empty; `define_kind` has refused such texts
    /// and undeclared keys.
    package init?(_ source: String, labels: [String: LabelMap] = [:]) {
        var pieces: [Piece] = []
        var literal: [UInt8] = []
        var bytes = Array(source.utf8)[...]
        func addLiteral() {
            guard !literal.isEmpty else { return }
            // Escaped once, not for every push.
            var content: [UInt8] = []
            JSONText.appendEscaped(literal[...], to: &content)
            pieces.append(.literal(content))
            literal = []
        }
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
                addLiteral()
                let key = String(decoding: bytes[..<end], as: UTF8.self)
                pieces.append(labels[key].map { .label(key, $0) } ?? .value(key))
                bytes = bytes[(end + 1)...]
            }
        }
        addLiteral()
        self.pieces = pieces
    }

    /// Fewest bytes that it comes to: no value, no label.
    var fixedBytes: Int {
        pieces.reduce(0) { sum, piece in if case .literal(let bytes) = piece { sum + bytes.count } else { sum } }
    }

    /// Appends the text with its values as **JSON string content**: escaped, without the quotes around it.
    func append(to output: inout [UInt8], payload: PayloadReader, text: [UInt8]) {
        for piece in pieces {
            switch piece {
            case .literal(let bytes):
                output.append(contentsOf: bytes)
            case .value(let key):
                guard let field = payload.field(key, in: text) else { continue }
                output.append(contentsOf: field.content(in: text))
            case .label(let key, let labels):
                output.append(contentsOf: labels.label(of: payload.field(key, in: text)?.word(in: text)))
            }
        }
    }
}
