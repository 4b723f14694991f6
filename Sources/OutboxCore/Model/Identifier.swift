/// A UUID (RFC 9562): the name of a notification, a batch, a worker or a ledger row.
package struct Identifier: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// The first eight bytes, most significant first.
    package let high: UInt64
    /// The last eight bytes, most significant first.
    package let low: UInt64

    /// The UUID with these 16 bytes.
    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// A random UUID (version 4): for names that must never repeat and are in no index that is written per push.
    package static func random(using generator: inout some RandomNumberGenerator) -> Identifier {
        Identifier(
            high: (generator.next() & ~0xF000) | 0x4000,
            low: (generator.next() & ~(0b11 << 62)) | 0b10 << 62)
    }

    /// A time-ordered UUID (version 7) of the millisecond of `time`: for keys of tables that are written per push,
    /// where random ones cost 1.6 to 1.8 times as much.
    package static func timeOrdered(
        at time: Timestamp, using generator: inout some RandomNumberGenerator
    ) -> Identifier {
        let milliseconds = UInt64(max(0, time.microseconds / 1000))
        return Identifier(
            high: milliseconds << 16 | 0x7000 | (generator.next() & 0x0FFF),
            low: (generator.next() & ~(0b11 << 62)) | 0b10 << 62)
    }

    package static func < (left: Identifier, right: Identifier) -> Bool {
        left.high == right.high ? left.low < right.low : left.high < right.high
    }

    /// The canonical form, lower case: 8-4-4-4-12.
    package var description: String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(36)
        append(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the canonical form, 36 bytes, to a buffer.
    package func append(to bytes: inout [UInt8]) {
        for index in 0..<16 {
            if index == 4 || index == 6 || index == 8 || index == 10 { bytes.append(UInt8(ascii: "-")) }
            let half = index < 8 ? high : low
            let byte = UInt8(truncatingIfNeeded: half >> (56 - 8 * UInt64(index % 8)))
            bytes.append(Self.digit(byte >> 4))
            bytes.append(Self.digit(byte & 0xF))
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    /// Reads the canonical form, in either case (Apple answers in upper case); nil for anything else.
    package init?(_ text: String) {
        self.init(Array(text.utf8)[...])
    }

    /// Reads the canonical form from a buffer. Not generic: it is called once per push, and across modules a generic
    /// initialiser costs forty times as much.
    package init?(_ text: ArraySlice<UInt8>) {
        guard text.count == 36 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for index in 0..<36 {
            let byte = text[text.startIndex + index]
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let value = Self.value(of: byte) else { return nil }
            if index < 18 { high = high << 4 | value } else { low = low << 4 | value }
        }
        self.init(high: high, low: low)
    }

    private static func value(of digit: UInt8) -> UInt64? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(digit - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(digit - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(digit - UInt8(ascii: "A") + 10)
        default: nil
        }
    }
}
