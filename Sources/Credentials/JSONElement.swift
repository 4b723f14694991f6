/// A value somewhere in a JSON text: the way to what stands deeper than the members of the outermost object.
///
/// The text is checked once, as a whole; after that each step looks at its own stretch only and answers nil for what is
/// not there or of another type. Nothing is decoded and no tree is built.
package struct JSONElement: Sendable {
    private let text: [UInt8]
    private let range: Range<Int>

    /// The outermost object; nil when `text` is not exactly one (RFC 8259), or nested deeper than
    /// `JSONScanner.depthLimit`.
    package init?(_ text: [UInt8]) {
        guard text.withUnsafeBufferPointer({ JSONScanner.isObject($0) }) else { return nil }
        self.init(text, 0..<text.count)
    }

    private init(_ text: [UInt8], _ range: Range<Int>) {
        self.text = text
        self.range = range
    }

    /// The first member of that name; nil when this is no object or has none.
    package func member(_ name: StaticString) -> JSONElement? {
        let found = text.withUnsafeBufferPointer { bytes in
            JSONScanner.value(of: name, in: UnsafeBufferPointer(rebasing: bytes[range]))
        }
        return found.map(within)
    }

    /// The elements, at most `limit` of them; none when this is no array.
    package func elements(limit: Int) -> [JSONElement] {
        let found = text.withUnsafeBufferPointer { bytes in
            JSONScanner.elements(of: UnsafeBufferPointer(rebasing: bytes[range])) ?? []
        }
        return found.prefix(limit).map(within)
    }

    /// The inside of a string as it is written, escapes and all; nil when this is none.
    package var content: ArraySlice<UInt8>? {
        let value = text[range]
        guard value.count >= 2, value.first == UInt8(ascii: "\"") else { return nil }
        return value.dropFirst().dropLast()
    }

    /// A string without escapes; nil when this is none.
    package var string: String? {
        guard let content, !content.contains(UInt8(ascii: "\\")) else { return nil }
        return String(decoding: content, as: UTF8.self)
    }

    private func within(_ part: Range<Int>) -> JSONElement {
        JSONElement(text, range.lowerBound + part.lowerBound..<range.lowerBound + part.upperBound)
    }
}
