/// Reads JSON as far as credentials and providers' answers need it: is it an object, and what are its own members?
///
/// Strict (RFC 8259) and bounded in depth; builds no tree and allocates nothing while it scans.
package struct JSONScanner {
    /// A member of the outermost object: where its name stands (without quotes) and where its value.
    package struct Member: Equatable {
        /// The name's bytes, escapes and all.
        package let name: Range<Int>
        /// The value's bytes; a string's with its quotes.
        package let value: Range<Int>
    }

    /// Objects and arrays within each other; deeper is refused.
    package static let depthLimit = 64

    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = bytes
    }

    /// Whether `bytes` are exactly one JSON object.
    package static func isObject(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var scanner = JSONScanner(bytes)
        return scanner.document { _ in }
    }

    /// The members of the object that `bytes` are; nil when they are anything else.
    package static func members(of bytes: UnsafeBufferPointer<UInt8>) -> [Member]? {
        var members: [Member] = []
        var scanner = JSONScanner(bytes)
        return scanner.document { members.append($0) } ? members : nil
    }

    /// The elements of the array that `bytes` are, where each stands; nil when they are anything else.
    package static func elements(of bytes: UnsafeBufferPointer<UInt8>) -> [Range<Int>]? {
        var elements: [Range<Int>] = []
        var scanner = JSONScanner(bytes)
        scanner.skipSpace()
        guard scanner.array(depth: 0, { elements.append($0) }) else { return nil }
        scanner.skipSpace()
        return scanner.position == bytes.count ? elements : nil
    }

    /// Where the value of the first member called `name` stands in the object that `bytes` are; nil when there is none,
    /// or they are anything else. For what is read per push: allocates nothing.
    package static func value(of name: StaticString, in bytes: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        let wanted = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        var value: Range<Int>?
        var scanner = JSONScanner(bytes)
        let isObject = scanner.document { member in
            if value == nil, bytes[member.name].elementsEqual(wanted) { value = member.value }
        }
        return isObject ? value : nil
    }

    private mutating func document(_ found: (Member) -> Void) -> Bool {
        skipSpace()
        guard peek == UInt8(ascii: "{"), object(depth: 0, found) else { return false }
        skipSpace()
        return position == bytes.count
    }

    private var peek: UInt8? {
        position < bytes.count ? bytes[position] : nil
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func take(_ character: UInt8) -> Bool {
        skipSpace()
        guard peek == character else { return false }
        position += 1
        return true
    }

    private mutating func object(depth: Int, _ found: (Member) -> Void) -> Bool {
        guard depth < Self.depthLimit, take(UInt8(ascii: "{")) else { return false }
        if take(UInt8(ascii: "}")) { return true }
        repeat {
            skipSpace()
            let nameStart = position
            guard string() else { return false }
            let name = nameStart + 1..<position - 1
            guard take(UInt8(ascii: ":")) else { return false }
            skipSpace()
            let valueStart = position
            guard value(depth: depth + 1) else { return false }
            found(Member(name: name, value: valueStart..<position))
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "}"))
    }

    private mutating func array(depth: Int, _ found: (Range<Int>) -> Void) -> Bool {
        guard depth < Self.depthLimit, take(UInt8(ascii: "[")) else { return false }
        if take(UInt8(ascii: "]")) { return true }
        repeat {
            skipSpace()
            let start = position
            guard value(depth: depth + 1) else { return false }
            found(start..<position)
        } while take(UInt8(ascii: ","))
        return take(UInt8(ascii: "]"))
    }

    private mutating func value(depth: Int) -> Bool {
        switch peek {
        case UInt8(ascii: "{"): object(depth: depth) { _ in }
        case UInt8(ascii: "["): array(depth: depth) { _ in }
        case UInt8(ascii: "\""): string()
        case UInt8(ascii: "t"): word("true")
        case UInt8(ascii: "f"): word("false")
        case UInt8(ascii: "n"): word("null")
        default: number()
        }
    }

    private mutating func word(_ expected: StaticString) -> Bool {
        for index in 0..<expected.utf8CodeUnitCount {
            guard peek == expected.utf8Start[index] else { return false }
            position += 1
        }
        return true
    }

    private mutating func string() -> Bool {
        guard peek == UInt8(ascii: "\"") else { return false }
        position += 1
        while let byte = peek {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return true
            case UInt8(ascii: "\\"): guard escape() else { return false }
            case 0..<0x20: return false
            default: break
            }
        }
        return false
    }

    private mutating func escape() -> Bool {
        guard let kind = peek else { return false }
        position += 1
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return true
        case UInt8(ascii: "u"):
            for _ in 0..<4 {
                guard let digit = peek, Self.isHex(digit) else { return false }
                position += 1
            }
            return true
        default:
            return false
        }
    }

    private mutating func number() -> Bool {
        if peek == UInt8(ascii: "-") { position += 1 }
        if peek == UInt8(ascii: "0") {
            position += 1
        } else {
            guard digits() else { return false }
        }
        if peek == UInt8(ascii: ".") {
            position += 1
            guard digits() else { return false }
        }
        guard peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") else { return true }
        position += 1
        if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { position += 1 }
        return digits()
    }

    private mutating func digits() -> Bool {
        let start = position
        while let byte = peek, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { position += 1 }
        return position > start
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
