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
