/// Writes JSON byte by byte: the stand-in logs each request and must not be slowed down by it.
enum JSONText {
    private static let hexDigits = Array("0123456789abcdef".utf8)

    /// Appends `text` as a JSON string. Bytes that are no UTF-8 come out as replacement characters.
    static func appendString(_ text: some Collection<UInt8>, to line: inout [UInt8]) {
        line.append(UInt8(ascii: "\""))
        if text.contains(where: { $0 < 0x20 || $0 >= 0x7F || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) {
            appendEscaped(text, to: &line)
        } else {
            line.append(contentsOf: text)
        }
        line.append(UInt8(ascii: "\""))
    }

    /// `text` as a JSON string.
    static func quoted(_ text: String) -> String {
        var line: [UInt8] = []
        appendString(text.utf8, to: &line)
        return String(decoding: line, as: UTF8.self)
    }

    /// Appends a name, a colon and nothing else; the first one of an object without a comma.
    static func appendName(_ name: StaticString, to line: inout [UInt8]) {
        if line.last != UInt8(ascii: "{") { line.append(UInt8(ascii: ",")) }
        line.append(UInt8(ascii: "\""))
        line.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        line.append(UInt8(ascii: "\""))
        line.append(UInt8(ascii: ":"))
    }

    /// Appends a whole number.
    static func appendNumber(_ number: some BinaryInteger, to line: inout [UInt8]) {
        line.append(contentsOf: String(number).utf8)
    }

    private static func appendEscaped(_ text: some Collection<UInt8>, to line: inout [UInt8]) {
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            switch scalar.value {
            case 0x22, 0x5C:
                line.append(UInt8(ascii: "\\"))
                line.append(UInt8(scalar.value))
            case 0x0A:
                line.append(contentsOf: "\\n".utf8)
            case 0..<0x20, 0x7F:
                line.append(contentsOf: "\\u00".utf8)
                line.append(hexDigits[Int(scalar.value >> 4)])
                line.append(hexDigits[Int(scalar.value & 15)])
            default:
                line.append(contentsOf: String(scalar).utf8)
            }
        }
    }
}
