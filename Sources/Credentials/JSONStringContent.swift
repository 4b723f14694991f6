/// What a JSON string stands for: its content with the escapes resolved (RFC 8259 7).
package enum JSONStringContent {
    /// Writes the content of `string`, which stands between its quotes in a document that was found in order, to the
    /// start of `room` and answers how many bytes that are. Content is never longer than its escaped form. Nil when
    /// half a surrogate pair stands alone, which means no character.
    package static func decode(_ string: some Sequence<UInt8>, into room: UnsafeMutableRawBufferPointer) -> Int? {
        var bytes = string.makeIterator()
        var count = 0
        while let byte = bytes.next() {
            guard byte == UInt8(ascii: "\\") else {
                room[count] = byte
                count += 1
                continue
            }
            guard let kind = bytes.next() else { return nil }
            if kind != UInt8(ascii: "u") {
                room[count] = plain(kind)
                count += 1
                continue
            }
            guard let scalar = scalar(&bytes) else { return nil }
            for unit in UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter {
                room[count] = unit
                count += 1
            }
        }
        return count
    }

    /// The content as text, for values that are no secret; nil for half a surrogate pair.
    package static func text(_ string: some Collection<UInt8>) -> String? {
        var count: Int?
        let bytes = [UInt8](unsafeUninitializedCapacity: string.count) { room, initialized in
            count = decode(string, into: UnsafeMutableRawBufferPointer(room))
            initialized = count ?? 0
        }
        return count == nil ? nil : String(decoding: bytes, as: UTF8.self)
    }

    private static func plain(_ kind: UInt8) -> UInt8 {
        switch kind {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: kind
        }
    }

    private static func scalar(_ bytes: inout some IteratorProtocol<UInt8>) -> Unicode.Scalar? {
        guard let first = unit(&bytes) else { return nil }
        if let scalar = Unicode.Scalar(first) { return scalar }
        guard first < 0xDC00, bytes.next() == UInt8(ascii: "\\"), bytes.next() == UInt8(ascii: "u"),
            let second = unit(&bytes), (0xDC00...0xDFFF).contains(second)
        else { return nil }
        return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    }

    private static func unit(_ bytes: inout some IteratorProtocol<UInt8>) -> UInt32? {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = bytes.next().flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else { return nil }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}
