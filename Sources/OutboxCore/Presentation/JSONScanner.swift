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
