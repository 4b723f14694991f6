/// One member of a payload: where its key and its value stand in the text.
package struct PayloadField: Equatable, Sendable {
    /// The key, without quotes and as written (declared keys hold no escapes).
    package let key: Range<Int>
    /// The value as JSON, quotes included.
    package let value: Range<Int>
    /// Whether the value is a JSON string.
    package let isString: Bool

    /// The value as **JSON string content**: a string's inside is that already; numbers and words need no escape.
    func content(in text: [UInt8]) -> ArraySlice<UInt8> {
        isString ? text[value].dropFirst().dropLast() : text[value]
    }

    /// The value as it is meant: an escape, which a producer may write for any character, is resolved.
    func word(in text: [UInt8]) -> ArraySlice<UInt8> {
        let content = content(in: text)
        return content.contains(UInt8(ascii: "\\")) ? Array(JSONText.unescaped(content).utf8)[...] : content
    }
}

/// The members of a JSON object, found by one pass over its text and without copying any of it.
///
/// The database has validated the payload on insert; what does not look like a flat object all the same (an older
/// schema, a restore) is answered with nil and becomes a rejected outcome, never a trap.
package struct PayloadReader: Sendable {
    /// The members, in the order in which they stand.
    package private(set) var fields: [PayloadField] = []

    /// A reader whose memory serves one payload after the other.
    package init() {}

    /// Finds the members of the object that `range` of `text` holds; false when it is not an object.
    package mutating func read(_ text: [UInt8], _ range: Range<Int>) -> Bool {
        fields.removeAll(keepingCapacity: true)
        var scanner = JSONScanner(text: text, position: range.lowerBound, end: range.upperBound)
        guard scanner.take(UInt8(ascii: "{")) else { return false }
        if scanner.take(UInt8(ascii: "}")) { return scanner.isAtEnd }
        repeat {
            guard let key = scanner.string(), scanner.take(UInt8(ascii: ":")) else { return false }
            let isString = scanner.peek() == UInt8(ascii: "\"")
            guard let value = scanner.value() else { return false }
            fields.append(
                PayloadField(key: key.lowerBound + 1..<key.upperBound - 1, value: value, isString: isString))
        } while scanner.take(UInt8(ascii: ","))
        return scanner.take(UInt8(ascii: "}")) && scanner.isAtEnd
    }

    /// The field with this key, also where the key is written with escapes; nil for one that is null, too.
    package func field(_ key: String, in text: [UInt8]) -> PayloadField? {
        let found =
            fields.first { text[$0.key].elementsEqual(key.utf8) }
            ?? fields.first { text[$0.key].contains(UInt8(ascii: "\\")) && JSONText.unescaped(text[$0.key]) == key }
        guard let found, !text[found.value].elementsEqual("null".utf8) else { return nil }
        return found
    }
}
