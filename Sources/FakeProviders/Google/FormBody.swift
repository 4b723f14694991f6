/// A body of type `application/x-www-form-urlencoded` (WHATWG URL, 5).
struct FormBody {
    private var fields: [(name: String, value: String)] = []

    /// Nil when an escape or the text behind it is broken.
    init?(_ bytes: [UInt8]) {
        for pair in bytes.split(separator: UInt8(ascii: "&")) {
            let middle = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard let name = Self.decoded(pair[..<middle]), let value = Self.decoded(pair[middle...].dropFirst())
            else { return nil }
            fields.append((name, value))
        }
    }

    /// The first value of that name.
    subscript(name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    private static func decoded(_ text: ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
                else { return nil }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
