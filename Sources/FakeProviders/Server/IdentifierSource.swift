/// UUIDs (version 4 in form) for ids of answers and tokens: different from each other, which is all they must be.
struct IdentifierSource {
    private var draws = SeededDraws(seed: .random(in: .min ... .max))

    private static let upperDigits = Array("0123456789ABCDEF".utf8)
    private static let lowerDigits = Array("0123456789abcdef".utf8)

    /// Appends a new one, 36 characters.
    mutating func append(upperCase: Bool, to text: inout [UInt8]) {
        let digits = upperCase ? Self.upperDigits : Self.lowerDigits
        let high = draws.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        let low = draws.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        for nibble in 0..<32 {
            if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 { text.append(UInt8(ascii: "-")) }
            let half = nibble < 16 ? high : low
            text.append(digits[Int(half >> UInt64(60 - nibble % 16 * 4) & 15)])
        }
    }
}
