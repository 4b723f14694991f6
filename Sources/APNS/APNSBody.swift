import OutboxCore

/// Writes the JSON body of a push byte by byte into memory that serves one push after the other.
struct APNSBody {
    /// The body written last.
    private(set) var bytes: [UInt8] = []
    private var content = PushContent()

    /// Writes the body of a notification; false when its payload is not what its kind promises.
    mutating func write(_ dispatch: ClaimedDispatch, _ kind: Kind, _ type: APNSPushType, text: [UInt8]) -> Bool {
        bytes.removeAll(keepingCapacity: true)
        switch kind.presentation {
        case .raw:
            return writeRaw(dispatch, text)
        case .unreadable:
            return false
        case .template(let template):
            if template.isBadgeOnly { return writeBadge(dispatch) }
            guard content.render(template, text: text, payload: dispatch.payload) else { return false }
            append("{\"aps\":{")
            switch type.form {
            case .alert, .app, .raw: appendVisible(dispatch, kind, isLocalized: template.isLocalized, text)
            case .background: append("\"content-available\":1")
            case .data: break
            }
            append("}")
            if let data = kind.data {
                appendDictionary(data, dispatch, kind, text)
            } else {
                appendPayload(kind, text)
            }
            append("}")
            return true
        }
    }

    /// The producer's own body stands under `apns`, word for word.
    private mutating func writeRaw(_ dispatch: ClaimedDispatch, _ text: [UInt8]) -> Bool {
        guard content.readRaw(text: text, payload: dispatch.payload),
            let field = content.payload.field("apns", in: text), text[field.value.lowerBound] == UInt8(ascii: "{")
        else { return false }
        bytes.append(contentsOf: text[field.value])
        return true
    }

    /// The number on the app's icon, and nothing else.
    private mutating func writeBadge(_ dispatch: ClaimedDispatch) -> Bool {
        guard let badge = dispatch.badge else { return false }
        append("{\"aps\":{\"badge\":")
        bytes.append(contentsOf: String(badge).utf8)
        append("}}")
        return true
    }

    private mutating func appendVisible(
        _ dispatch: ClaimedDispatch, _ kind: Kind, isLocalized: Bool, _ text: [UInt8]
    ) {
        if !content.title.isEmpty || !content.subtitle.isEmpty || !content.body.isEmpty {
            append("\"alert\":{")
            if isLocalized { appendKeys() } else { appendTexts() }
            append("}")
        }
        if let badge = dispatch.badge {
            appendName("badge")
            bytes.append(contentsOf: String(badge).utf8)
        }
        // Silence wins over everything that the kind says.
        if let sound = kind.sound, !dispatch.silent { appendText("sound", sound) }
        if kind.usesThread && !dispatch.thread.isEmpty {
            appendText("thread-id", text[Int(dispatch.thread.lowerBound)..<Int(dispatch.thread.upperBound)])
        }
        if let category = kind.category { appendText("category", category) }
        if dispatch.silent {
            appendText("interruption-level", "passive")
        } else if let level = kind.interruptionLevel {
            appendText("interruption-level", level)
        }
        if kind.isMutable {
            appendName("mutable-content")
            append("1")
        }
    }

    private mutating func appendTexts() {
        appendRendered("title", content.title)
        appendRendered("subtitle", content.subtitle)
        appendRendered("body", content.body)
    }

    private mutating func appendKeys() {
        appendRendered("title-loc-key", content.title)
        appendArguments("title-loc-args", content.titleArguments)
        appendRendered("subtitle-loc-key", content.subtitle)
        appendArguments("subtitle-loc-args", content.subtitleArguments)
        appendRendered("loc-key", content.body)
        appendArguments("loc-args", content.bodyArguments)
    }

    /// The declared dictionary beside `aps`: below the container key, or at the top level. Absent stays absent, never
    /// null.
    private mutating func appendDictionary(
        _ members: [DataMember], _ dispatch: ClaimedDispatch, _ kind: Kind, _ text: [UInt8]
    ) {
        var isOpen = kind.container.isEmpty
        for member in members {
            let start = bytes.count
            if !isOpen {
                appendName(kind.container)
                append("{")
            }
            appendComma()
            append("\"")
            bytes.append(contentsOf: member.name)
            append("\":")
            if content.append(member.value, of: dispatch, kind, text: text, to: &bytes) {
                isOpen = true
            } else {
                bytes.removeSubrange(start...)
            }
        }
        if isOpen && !kind.container.isEmpty { append("}") }
    }

    /// The same with all members of the payload, under their own names.
    private mutating func appendPayload(_ kind: Kind, _ text: [UInt8]) {
        let isContained = !kind.container.isEmpty
        var isOpen = false
        for field in content.payload.fields {
            if text[field.value].elementsEqual("null".utf8) { continue }
            if !isContained && text[field.key].elementsEqual("aps".utf8) { continue }
            if isContained && !isOpen {
                appendName(kind.container)
                append("{")
            }
            isOpen = true
            appendComma()
            append("\"")
            bytes.append(contentsOf: text[field.key])
            append("\":")
            bytes.append(contentsOf: text[field.value])
        }
        if isContained && isOpen { append("}") }
    }

    private mutating func appendRendered(_ name: StaticString, _ value: [UInt8]) {
        guard !value.isEmpty else { return }
        appendName(name)
        append("\"")
        bytes.append(contentsOf: value)
        append("\"")
    }

    private mutating func appendArguments(_ name: StaticString, _ list: [UInt8]) {
        guard !list.isEmpty else { return }
        appendName(name)
        append("[")
        bytes.append(contentsOf: list)
        append("]")
    }

    private mutating func appendText(_ name: StaticString, _ value: ArraySlice<UInt8>) {
        appendName(name)
        append("\"")
        JSONText.appendEscaped(value, to: &bytes)
        append("\"")
    }

    private mutating func appendText(_ name: StaticString, _ value: String) {
        appendName(name)
        append("\"")
        JSONText.appendEscaped(value, to: &bytes)
        append("\"")
    }

    private mutating func appendName(_ name: StaticString) {
        appendComma()
        append("\"")
        append(name)
        append("\":")
    }

    private mutating func appendName(_ name: String) {
        appendComma()
        append("\"")
        JSONText.appendEscaped(name, to: &bytes)
        append("\":")
    }

    private mutating func appendComma() {
        if bytes.last != UInt8(ascii: "{") { append(",") }
    }

    private mutating func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}
