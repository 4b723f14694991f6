/// JSON as a tree, for bodies whose shape is checked. A reader of its own on purpose, so that a slip in the sender's is
/// found; strict (RFC 8259) and bounded in depth.
indirect enum JSONValue: Equatable {
    /// One member of an object; names may repeat.
    struct Member: Equatable {
        let name: String
        let value: JSONValue
    }

    case object([Member])
    case array([JSONValue])
    case string(String)
    /// A number as it was written.
    case number(String)
    case bool(Bool)
    case null

    /// The value that `bytes` are; nil when they are not exactly one.
    init?(_ bytes: [UInt8]) {
        var reader = JSONReader(bytes)
        guard let value = reader.document() else { return nil }
        self = value
    }

    /// The members of an object; nil for anything else.
    var members: [Member]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The text of a string; nil for anything else.
    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// A whole number; nil for anything else.
    var integer: Int64? {
        if case .number(let digits) = self { Int64(digits) } else { nil }
    }

    /// The first member of that name, in an object.
    subscript(name: String) -> JSONValue? {
        members?.first { $0.name == name }?.value
    }
}

/// Reads a document from its first byte to its last.
private struct JSONReader {
    private let bytes: [UInt8]
    private var position = 0

    /// Objects and arrays within each other; Google refuses more than 100.
    private static let depthLimit = 100

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func document() -> JSONValue? {
        guard let value = value(depth: 0) else { return nil }
        skipSpace()
        return position == bytes.count ? value : nil
    }

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        skipSpace()
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func value(depth: Int) -> JSONValue? {
        guard depth < Self.depthLimit else { return nil }
        skipSpace()
        switch peek {
        case UInt8(ascii: "{"): return object(depth)
        case UInt8(ascii: "["): return array(depth)
        case UInt8(ascii: "\""): return string().map { .string($0) }
        case UInt8(ascii: "t"): return word("true") ? .bool(true) : nil
        case UInt8(ascii: "f"): return word("false") ? .bool(false) : nil
        case UInt8(ascii: "n"): return word("null") ? .null : nil
        default: return number()
        }
    }

    private mutating func object(_ depth: Int) -> JSONValue? {
        position += 1
        var members: [JSONValue.Member] = []
        if take("}") { return .object([]) }
        repeat {
            skipSpace()
            guard let name = string(), take(":"), let value = value(depth: depth + 1) else { return nil }
            members.append(JSONValue.Member(name: name, value: value))
        } while take(",")
        return take("}") ? .object(members) : nil
    }

    private mutating func array(_ depth: Int) -> JSONValue? {
        position += 1
        var elements: [JSONValue] = []
        if take("]") { return .array([]) }
        repeat {
            guard let element = value(depth: depth + 1) else { return nil }
            elements.append(element)
        } while take(",")
        return take("]") ? .array(elements) : nil
    }

    private mutating func word(_ expected: String) -> Bool {
        guard bytes[position...].starts(with: expected.utf8) else { return false }
        position += expected.utf8.count
        return true
    }

    private mutating func number() -> JSONValue? {
        let start = position
        if peek == UInt8(ascii: "-") { position += 1 }
        if peek == UInt8(ascii: "0") { position += 1 } else if !digits() { return nil }
        if peek == UInt8(ascii: ".") {
            position += 1
            guard digits() else { return nil }
        }
        if let byte = peek, byte | 0x20 == UInt8(ascii: "e") {
            position += 1
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { position += 1 }
            guard digits() else { return nil }
        }
        return .number(String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func digits() -> Bool {
        let start = position
        while let byte = peek, (48...57).contains(byte) { position += 1 }
        return position > start
    }

    private mutating func string() -> String? {
        guard peek == UInt8(ascii: "\"") else { return nil }
        position += 1
        var units: [UInt8] = []
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: units, as: UTF8.self)
            case UInt8(ascii: "\\"): guard escape(into: &units) else { return nil }
            case 0..<0x20: return nil
            default: units.append(byte)
            }
        }
        return nil
    }

    private mutating func escape(into units: inout [UInt8]) -> Bool {
        guard let kind = peek else { return false }
        position += 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): units.append(kind)
        case UInt8(ascii: "b"): units.append(0x08)
        case UInt8(ascii: "f"): units.append(0x0C)
        case UInt8(ascii: "n"): units.append(0x0A)
        case UInt8(ascii: "r"): units.append(0x0D)
        case UInt8(ascii: "t"): units.append(0x09)
        case UInt8(ascii: "u"):
            guard let scalar = escapedScalar() else { return false }
            units.append(contentsOf: String(scalar).utf8)
        default: return false
        }
        return true
    }

    /// The scalar of `\uXXXX`, or of a pair of surrogates; nil for half a pair.
    private mutating func escapedScalar() -> Unicode.Scalar? {
        guard let unit = fourHexDigits() else { return nil }
        guard (0xD800..<0xDC00).contains(unit) else { return Unicode.Scalar(unit) }
        guard word("\\u"), let low = fourHexDigits(), (0xDC00..<0xE000).contains(low) else { return nil }
        return Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00))
    }

    private mutating func fourHexDigits() -> UInt32? {
        guard position + 4 <= bytes.count else { return nil }
        let text = bytes[position..<position + 4]
        guard text.allSatisfy({ (48...57).contains($0) || (97...102).contains($0 | 0x20) }) else { return nil }
        position += 4
        return UInt32(String(decoding: text, as: UTF8.self), radix: 16)
    }
}
