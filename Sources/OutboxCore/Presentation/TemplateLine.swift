/// A line of what is shown: a text, a key of the app's, or variants of one.
package indirect enum TemplateLine: Equatable, Sendable {
    /// A text with places for values.
    case text(TemplateText)
    /// A key into the app's language files.
    case localized(LocalizedText)
    /// One of several lines, by a payload key.
    case variants(TextVariants)

    /// Fewest bytes that it comes to: its shortest variant, no value, no label, no argument.
    package var fixedBytes: Int {
        switch self {
        case .text(let text): text.fixedBytes
        case .localized(let text): text.key.utf8.count
        case .variants(let variants): variants.lines.map(\.fixedBytes).min() ?? 0
        }
    }

    /// Appends what is shown as **JSON string content**, and a key's arguments as the content of a JSON array.
    func append(to output: inout [UInt8], arguments: inout [UInt8], payload: PayloadReader, text: [UInt8]) {
        switch self {
        case .text(let line):
            line.append(to: &output, payload: payload, text: text)
        case .localized(let line):
            line.append(to: &output, arguments: &arguments, payload: payload, text: text)
        case .variants(let variants):
            variants.line(payload: payload, text: text)?
                .append(to: &output, arguments: &arguments, payload: payload, text: text)
        }
    }
}

/// Lines of which one is shown: by the value of a payload key, or by its absence.
package struct TextVariants: Equatable, Sendable {
    private let key: String
    private var cases: [ArraySlice<UInt8>: TemplateLine] = [:]
    private let absent: TemplateLine?
    private let other: TemplateLine?

    /// Variants by `key`: `cases` by its value, `absent` where it is not there, `other` for what is left.
    package init(by key: String, cases: [String: TemplateLine], absent: TemplateLine?, other: TemplateLine?) {
        self.key = key
        self.absent = absent
        self.other = other
        for (value, line) in cases { self.cases[Array(value.utf8)[...]] = line }
    }

    /// All of them.
    var lines: [TemplateLine] {
        Array(cases.values) + [absent, other].compactMap(\.self)
    }

    /// The one for a payload; nil when none is, which `define_kind` refuses.
    func line(payload: PayloadReader, text: [UInt8]) -> TemplateLine? {
        guard let field = payload.field(key, in: text) else { return absent ?? other }
        return cases[field.word(in: text)] ?? other
    }
}
