/// The members of a small JSON object by name: strings without escapes and whole numbers, which is all that tokens and
/// providers' error bodies consist of.
package struct JSONMembers {
    private let bytes: [UInt8]
    private let members: [JSONScanner.Member]

    /// Nil when `bytes` are not exactly one JSON object.
    package init?(_ bytes: [UInt8]) {
        guard let members = bytes.withUnsafeBufferPointer({ JSONScanner.members(of: $0) }) else { return nil }
        self.bytes = bytes
        self.members = members
    }

    /// The string called `name`; nil when it is absent, another type, or holds an escape.
    package func string(_ name: StaticString) -> String? {
        guard let value = value(of: name), value.count >= 2, value.first == UInt8(ascii: "\""),
            !value.contains(UInt8(ascii: "\\"))
        else { return nil }
        return String(decoding: value.dropFirst().dropLast(), as: UTF8.self)
    }

    /// The string called `name` with its escapes resolved; nil when it is absent or another type.
    package func text(_ name: StaticString) -> String? {
        guard let value = value(of: name), value.count >= 2, value.first == UInt8(ascii: "\"") else { return nil }
        return JSONStringContent.text(value.dropFirst().dropLast())
    }

    /// The whole number called `name`; nil when it is absent, a string, has a fraction or is out of range.
    package func integer(_ name: StaticString) -> Int64? {
        value(of: name).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }

    /// The first member of that name counts, as it does for most readers.
    private func value(of name: StaticString) -> ArraySlice<UInt8>? {
        let wanted = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        return members.first { bytes[$0.name].elementsEqual(wanted) }.map { bytes[$0.value] }
    }
}
