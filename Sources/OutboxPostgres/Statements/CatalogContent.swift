import OutboxCore

/// A kind's `content` as the catalog has it, read into what the worker renders by. `docs/kinds.md` has its form, and
/// `define_kind` has checked it: what cannot be read all the same came around that.
struct CatalogContent {
    let presentation: Presentation
    let container: String
    let data: [DataMember]?
    let fcmData: [DataMember]?

    /// Reads the JSON text of a presentation's content; nil when it is not of the form that this worker knows.
    init?(_ source: String, presentation name: String, keys: [PayloadKey]) {
        let reader = ContentReader(source, isLocalized: name == "localized")
        guard let members = reader.members(reader.whole) else { return nil }
        switch name {
        case "raw":
            presentation = .raw
        case "template", "localized", "code":
            guard let template = reader.template(members) else { return nil }
            presentation = .template(template)
        default:
            return nil
        }
        container = members["container"].flatMap(reader.text) ?? ""
        let data = members["data"].map { reader.dictionary($0) }
        let fcm = members["fcm"].map { reader.dictionary($0) }
        if let data, data == nil { return nil }
        if let fcm, fcm == nil { return nil }
        self.data = (data ?? nil) ?? Self.usualData(keys)
        fcmData = fcm ?? nil
    }

    /// All keys but the visible texts; nil for all, which needs no list.
    private static func usualData(_ keys: [PayloadKey]) -> [DataMember]? {
        guard keys.contains(where: { $0.type == .text }) else { return nil }
        return keys.filter { $0.type != .text }.map { DataMember($0.name, .payload($0.name)) }
    }
}

/// Takes JSON apart.
private struct ContentReader {
    private let bytes: [UInt8]
    private let isLocalized: Bool

    init(_ source: String, isLocalized: Bool) {
        bytes = Array(source.utf8)
        self.isLocalized = isLocalized
    }

    var whole: Range<Int> { bytes.indices }

    /// The members of an object by name; nil for what is none.
    func members(_ range: Range<Int>) -> [String: Range<Int>]? {
        fields(range).map { fields in Dictionary(uniqueKeysWithValues: fields) }
    }

    /// A string's content; nil for what is none.
    func text(_ range: Range<Int>) -> String? {
        guard bytes[range].first == UInt8(ascii: "\"") else { return nil }
        return JSONText.unescaped(bytes[range].dropFirst().dropLast())
    }

    func template(_ members: [String: Range<Int>]) -> Template? {
        guard let labels = labels(members["labels"]) else { return nil }
        let lines = ["title", "subtitle", "body"].map { name in
            members[name].map { line($0, labels) }
        }
        for line in lines { if let line, line == nil { return nil } }
        return Template(
            lines: lines[0] ?? nil, lines[1] ?? nil, lines[2] ?? nil, isLocalized: isLocalized,
            isBadgeOnly: members["form"] != nil)
    }

    func dictionary(_ range: Range<Int>) -> [DataMember]? {
        guard let fields = fields(range) else { return nil }
        var members: [DataMember] = []
        for (name, place) in fields {
            guard let value = value(place) else { return nil }
            members.append(DataMember(name, value))
        }
        return members
    }

    private func fields(_ range: Range<Int>) -> [(String, Range<Int>)]? {
        var reader = PayloadReader()
        guard reader.read(bytes, range) else { return nil }
        return reader.fields.map { (JSONText.unescaped(bytes[$0.key]), $0.value) }
    }

    private func labels(_ range: Range<Int>?) -> [String: LabelMap]? {
        guard let range else { return [:] }
        guard let fields = fields(range) else { return nil }
        var labels: [String: LabelMap] = [:]
        for (key, place) in fields {
            guard let words = members(place) else { return nil }
            var map: [String: String] = [:]
            for (word, label) in words {
                guard let label = text(label) else { return nil }
                map[word] = label
            }
            guard let fallback = map.removeValue(forKey: "*") else { return nil }
            labels[key] = LabelMap(map, fallback: fallback)
        }
        return labels
    }

    private func line(_ range: Range<Int>, _ labels: [String: LabelMap]) -> TemplateLine? {
        if let source = text(range) {
            return isLocalized
                ? LocalizedText(source).map { .localized($0) }
                : TemplateText(source, labels: labels).map { .text($0) }
        }
        guard let parts = members(range), let key = parts["by"].flatMap(text) else { return nil }
        var cases: [String: TemplateLine] = [:]
        if let place = parts["cases"] {
            guard let fields = fields(place) else { return nil }
            for (word, place) in fields {
                guard let line = line(place, labels) else { return nil }
                cases[word] = line
            }
        }
        let absent = parts["absent"].map { line($0, labels) }
        let other = parts["else"].map { line($0, labels) }
        if let absent, absent == nil { return nil }
        if let other, other == nil { return nil }
        return .variants(TextVariants(by: key, cases: cases, absent: absent ?? nil, other: other ?? nil))
    }

    private func value(_ range: Range<Int>) -> DataValue? {
        guard let text = text(range) else {
            let isScalar = bytes[range].first.map { $0 != UInt8(ascii: "{") && $0 != UInt8(ascii: "[") } ?? false
            return isScalar ? .constant(Array(bytes[range])) : nil
        }
        guard text.first == "{", text.last == "}" else { return .constant(Array(bytes[range])) }
        let name = text.dropFirst().dropLast()
        guard name.first == "$" else { return .payload(String(name)) }
        return OwnValue(rawValue: String(name.dropFirst())).map { .own($0) }
    }
}
