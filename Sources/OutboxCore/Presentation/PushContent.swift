/// What one notification shows and carries, before any provider's form: the memory of it serves one after the other.
package struct PushContent: Sendable {
    /// Texts, or keys of the app's, as JSON string content (escaped, without quotes); empty for none.
    package private(set) var title: [UInt8] = []
    /// Second line, like `title`.
    package private(set) var subtitle: [UInt8] = []
    /// The text itself, like `title`.
    package private(set) var body: [UInt8] = []
    /// What fills the places of a title that is a key, as the content of a JSON array of strings; empty for none.
    package private(set) var titleArguments: [UInt8] = []
    /// Like `titleArguments`.
    package private(set) var subtitleArguments: [UInt8] = []
    /// Like `titleArguments`.
    package private(set) var bodyArguments: [UInt8] = []
    /// The payload's members: what the app gets beside the texts.
    package private(set) var payload = PayloadReader()

    /// Content to be rendered into.
    package init() {}

    /// Renders a notification of a kind with a template; false when the payload is no JSON object.
    package mutating func render(_ template: Template, text: [UInt8], payload range: TextRange) -> Bool {
        title.removeAll(keepingCapacity: true)
        subtitle.removeAll(keepingCapacity: true)
        body.removeAll(keepingCapacity: true)
        if template.isLocalized {
            titleArguments.removeAll(keepingCapacity: true)
            subtitleArguments.removeAll(keepingCapacity: true)
            bodyArguments.removeAll(keepingCapacity: true)
        }
        guard payload.read(text, Int(range.lowerBound)..<Int(range.upperBound)) else { return false }
        template.title?.append(to: &title, arguments: &titleArguments, payload: payload, text: text)
        template.subtitle?.append(to: &subtitle, arguments: &subtitleArguments, payload: payload, text: text)
        template.body?.append(to: &body, arguments: &bodyArguments, payload: payload, text: text)
        return true
    }

    /// Reads a `raw` kind's payload; false when it is no JSON object.
    package mutating func readRaw(text: [UInt8], payload range: TextRange) -> Bool {
        payload.read(text, Int(range.lowerBound)..<Int(range.upperBound))
    }

    /// Appends the value of a dictionary's member as JSON; false, and nothing, where it is absent. For the notification
    /// rendered last.
    package func append(
        _ value: DataValue, of dispatch: ClaimedDispatch, _ kind: Kind, text: [UInt8], to output: inout [UInt8]
    ) -> Bool {
        switch value {
        case .constant(let json):
            output.append(contentsOf: json)
            return true
        case .payload(let key):
            guard let field = payload.field(key, in: text) else { return false }
            output.append(contentsOf: text[field.value])
            return true
        case .own(.id):
            output.append(UInt8(ascii: "\""))
            dispatch.notification.append(to: &output)
            output.append(UInt8(ascii: "\""))
            return true
        case .own(.badge):
            guard let badge = dispatch.badge else { return false }
            output.append(contentsOf: String(badge).utf8)
            return true
        case .own(.silent):
            output.append(UInt8(ascii: dispatch.silent ? "1" : "0"))
            return true
        case .own(.thread): return append(range: dispatch.thread, text, to: &output)
        case .own(.instance): return append(range: dispatch.instance, text, to: &output)
        case .own(.mapping): return append(content: kind.mappingVersion, to: &output)
        case .own(.title): return append(content: title, to: &output)
        case .own(.subtitle): return append(content: subtitle, to: &output)
        case .own(.body): return append(content: body, to: &output)
        }
    }

    private func append(range: TextRange, _ text: [UInt8], to output: inout [UInt8]) -> Bool {
        guard !range.isEmpty else { return false }
        output.append(UInt8(ascii: "\""))
        JSONText.appendEscaped(text[Int(range.lowerBound)..<Int(range.upperBound)], to: &output)
        output.append(UInt8(ascii: "\""))
        return true
    }

    private func append(content: [UInt8], to output: inout [UInt8]) -> Bool {
        guard !content.isEmpty else { return false }
        output.append(UInt8(ascii: "\""))
        output.append(contentsOf: content)
        output.append(UInt8(ascii: "\""))
        return true
    }
}
