/// A bit string (`bit`, `bit varying`): the first bit is the leftmost one, as PostgreSQL prints it.
package struct PostgresBits: Sendable, Hashable, CustomStringConvertible {
    /// How many bits there are.
    package let count: Int
    /// The bits, eight to a byte, the first one highest; unused bits of the last byte are zero.
    private(set) var bytes: [UInt8]

    /// `count` bits of one value.
    package init(repeating bit: Bool, count: Int) {
        precondition(count >= 0, "a bit string has no negative length")
        self.count = count
        bytes = [UInt8](repeating: bit ? 0xFF : 0, count: (count + 7) / 8)
        if bit && count % 8 != 0 { bytes[bytes.count - 1] = 0xFF << UInt8(8 - count % 8) }
    }

    init(count: Int, bytes: some Sequence<UInt8>) {
        self.count = count
        self.bytes = Array(bytes)
    }

    /// The bit at `index`, counted from the left and from 0.
    package subscript(index: Int) -> Bool {
        get {
            precondition(index >= 0 && index < count, "bit index out of range")
            return bytes[index / 8] & (0x80 >> UInt8(index % 8)) != 0
        }
        set {
            precondition(index >= 0 && index < count, "bit index out of range")
            let bit: UInt8 = 0x80 >> UInt8(index % 8)
            if newValue { bytes[index / 8] |= bit } else { bytes[index / 8] &= ~bit }
        }
    }

    package var description: String {
        String((0..<count).map { self[$0] ? "1" : "0" })
    }
}
