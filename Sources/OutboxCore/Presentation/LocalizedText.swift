/// A key into the app's own language files, and the payload keys whose values fill the places of its text.
package struct LocalizedText: Equatable, Sendable {
    /// The key; of letters, digits, `_`, `.` and `-`, so that JSON takes it as it is.
    package let key: String
    /// The payload keys, in the order of the places.
    package let arguments: [String]

    /// Reads the catalog's form: `KEY` or `KEY(argument,argument)`. Nil for anything else, which `define_kind` refuses.
    package init?(_ source: String) {
        let parts = source.split(separator: "(", maxSplits: 1, omittingEmptySubsequences: false)
        key = String(parts[0])
        if parts.count == 2 {
            guard parts[1].last == ")" else { return nil }
            arguments = parts[1].dropLast().split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        } else {
            arguments = []
        }
        let names = [key] + arguments
        guard names.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(Self.isPlain) }) else { return nil }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122)
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
    }

    /// Appends the key, and the arguments as the content of a JSON array of strings. An absent argument keeps its
    /// place, as an empty text.
    func append(
        to output: inout [UInt8], arguments list: inout [UInt8], payload: PayloadReader, text: [UInt8]
    ) {
        output.append(contentsOf: key.utf8)
        for argument in arguments {
            if !list.isEmpty { list.append(UInt8(ascii: ",")) }
            list.append(UInt8(ascii: "\""))
            if let field = payload.field(argument, in: text) { list.append(contentsOf: field.content(in: text)) }
            list.append(UInt8(ascii: "\""))
        }
    }
}
