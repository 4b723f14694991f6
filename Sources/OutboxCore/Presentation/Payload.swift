/// One member of a payload: where its key and its value stand in the text.
package struct PayloadField: Equatable, Sendable {
    /// The key, without quotes and as written (declared keys hold no escapes).
    package let key: Range<Int>
    /// The value as JSON, quotes included.
    package let value: Range<Int>
    /// Whether the value is a JSON string.
    package let isString: Bool
}

/// The members of a JSON object, found by one pass over its text and without copying any of it.
///
/// The database has validated the payload on insert; what does not look like a flat object all the same (an older
/// schema, a restore) is answered with nil and becomes a rejected outcome, never a trap.
package struct PayloadReader: Sendable {
    /// The members, in the order in which they stand.
    package private(set) var fields: [PayloadField] = []

    /// A reader whose memory serves one payload after the other.
    package init() {}

    /// Finds the members of the object that `range` of `text` holds; false when it is not an object.
    package mutating func read(_ text: [UInt8], _ range: Range<Int>) -> Bool {
        fields.removeAll(keepingCapacity: true)
        var scanner = JSONScanner(text: text, position: range.lowerBound, end: range.upperBound)
        guard scanner.take(UInt8(ascii: "{")) else { return false }
        if scanner.take(UInt8(ascii: "}")) { return scanner.isAtEnd }
        repeat {
            guard let key = scanner.string(), scanner.take(UInt8(ascii: ":")) else { return false }
            let isString = scanner.peek() == UInt8(ascii: "\"")
            guard let value = scanner.value() else { return false }
            fields.append(
                PayloadField(key: key.lowerBound + 1..<key.upperBound - 1, value: value, isString: isString))
        } while scanner.take(UInt8(ascii: ","))
        return scanner.take(UInt8(ascii: "}")) && scanner.isAtEnd
    }

    /// The field with this key.
    package func field(_ key: String, in text: [UInt8]) -> PayloadField? {
        fields.first { text[$0.key].elementsEqual(key.utf8) }
    }
}

/// Finds the ends of JSON values, so that their text can be passed on as it is.
struct JSONScanner {
    /// Deeper nesting is refused: nothing a kind declares nests, and a raw payload needs a handful of levels.
    static let depthLimit = 32

    let text: [UInt8]
    private(set) var position: Int
    let end: Int

    init(text: [UInt8], position: Int, end: Int) {
        self.text = text
        self.position = position
        self.end = end
    }

    private mutating func skipSpace() {
        while position < end, Self.isSpace(text[position]) { position += 1 }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    mutating func peek() -> UInt8? {
        skipSpace()
        return position < end ? text[position] : nil
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        position += 1
        return true
    }

    var isAtEnd: Bool {
        var copy = self
        return copy.peek() == nil
    }

    /// A string with its quotes.
    mutating func string() -> Range<Int>? {
        guard peek() == UInt8(ascii: "\"") else { return nil }
        let start = position
        position += 1
        while position < end {
            switch text[position] {
            case UInt8(ascii: "\\"): position += 2
            case UInt8(ascii: "\""):
                position += 1
                return start..<position
            default: position += 1
            }
        }
        return nil
    }

    /// Any value; of objects and arrays only the brackets are looked at.
    mutating func value() -> Range<Int>? {
        guard let first = peek() else { return nil }
        if first == UInt8(ascii: "\"") { return string() }
        let start = position
        guard first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else { return scalar() }
        var depth = 0
        while let byte = peek() {
            switch byte {
            case UInt8(ascii: "\""):
                guard string() != nil else { return nil }
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
            position += 1
            if depth == 0 { return start..<position }
            if depth > Self.depthLimit { return nil }
        }
        return nil
    }

    private static func endsScalar(_ byte: UInt8) -> Bool {
        isSpace(byte) || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
    }

    private mutating func scalar() -> Range<Int>? {
        let start = position
        while position < end, !Self.endsScalar(text[position]) { position += 1 }
        return position > start ? start..<position : nil
    }
}
