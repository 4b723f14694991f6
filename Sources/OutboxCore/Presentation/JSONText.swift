/// Writing JSON by bytes.
package enum JSONText {
    /// Appends UTF-8 `bytes` as the content of a JSON string (RFC 8259 7): only what must be escaped is, in its
    /// shortest form, so that the byte count stays the true one.
    package static func appendEscaped(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
        for byte in bytes { append(byte, to: &output) }
    }

    /// Appends a text in the same way. Concrete types twice, because a generic function that is called per push across
    /// modules is not specialised.
    package static func appendEscaped(_ text: String, to output: inout [UInt8]) {
        for byte in text.utf8 { append(byte, to: &output) }
    }

    /// How many bytes of UTF-8 the content of a JSON string stands for, once its escapes are resolved. Half a surrogate
    /// pair counts as the replacement character does; what is no escape counts as written.
    package static func unescapedCount(_ content: ArraySlice<UInt8>) -> Int {
        var count = 0
        var index = content.startIndex
        while index < content.endIndex {
            guard content[index] == UInt8(ascii: "\\") else {
                count += 1
                index += 1
                continue
            }
            guard let unit = codeUnit(content, at: index) else {
                count += 1
                index += 2
                continue
            }
            index += 6
            switch unit {
            case 0..<0x80: count += 1
            case 0x80..<0x800: count += 2
            case 0xD800..<0xDC00:
                let low = codeUnit(content, at: index)
                let isPair = low.map { (0xDC00..<0xE000).contains($0) } ?? false
                count += isPair ? 4 : 3
                index += isPair ? 6 : 0
            default: count += 3
            }
        }
        return count
    }

    /// The content of a JSON string as text: escapes resolved, half a surrogate pair as the replacement character.
    package static func unescaped(_ content: ArraySlice<UInt8>) -> String {
        var units: [UInt16] = []
        var rest = content
        while let byte = rest.first {
            guard byte == UInt8(ascii: "\\") else {
                let end = rest.firstIndex(of: UInt8(ascii: "\\")) ?? rest.endIndex
                units.append(contentsOf: String(decoding: rest[..<end], as: UTF8.self).utf16)
                rest = rest[end...]
                continue
            }
            if let unit = codeUnit(rest, at: rest.startIndex) {
                units.append(unit)
                rest = rest.dropFirst(6)
            } else {
                if let escaped = rest.dropFirst().first { units.append(UInt16(meaning(of: escaped))) }
                rest = rest.dropFirst(2)
            }
        }
        return String(decoding: units, as: UTF16.self)
    }

    private static func meaning(of escaped: UInt8) -> UInt8 {
        switch escaped {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: escaped
        }
    }

    /// The number behind `\u` at `index`; nil when that is no such escape.
    private static func codeUnit(_ content: ArraySlice<UInt8>, at index: Int) -> UInt16? {
        guard index + 6 <= content.endIndex, content[index] == UInt8(ascii: "\\"),
            content[index + 1] == UInt8(ascii: "u")
        else { return nil }
        return UInt16(String(decoding: content[index + 2..<index + 6], as: UTF8.self), radix: 16)
    }

    private static func append(_ byte: UInt8, to output: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            output.append(UInt8(ascii: "\\"))
            output.append(byte)
        case 0x08: appendShort("b", to: &output)
        case 0x09: appendShort("t", to: &output)
        case 0x0A: appendShort("n", to: &output)
        case 0x0C: appendShort("f", to: &output)
        case 0x0D: appendShort("r", to: &output)
        case 0..<0x20:
            output.append(contentsOf: "\\u00".utf8)
            output.append(hexDigit(byte >> 4))
            output.append(hexDigit(byte & 0xF))
        default:
            output.append(byte)
        }
    }

    private static func appendShort(_ letter: Unicode.Scalar, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\\"))
        output.append(UInt8(ascii: letter))
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
