/// What one notification shows and carries, before any provider's form: the memory of it serves one after the other.
package struct PushContent: Sendable {
    /// Texts as JSON string content (escaped, without quotes); empty for none.
    package private(set) var title: [UInt8] = []
    /// Second line, like `title`.
    package private(set) var subtitle: [UInt8] = []
    /// The text itself, like `title`.
    package private(set) var body: [UInt8] = []
    /// The payload's members: what the app gets beside the texts.
    package private(set) var payload = PayloadReader()

    /// Content to be rendered into.
    package init() {}

    /// Renders a `template` kind's notification; false when the payload is no JSON object.
    package mutating func render(_ template: Template, text: [UInt8], payload range: TextRange) -> Bool {
        title.removeAll(keepingCapacity: true)
        subtitle.removeAll(keepingCapacity: true)
        body.removeAll(keepingCapacity: true)
        guard payload.read(text, Int(range.lowerBound)..<Int(range.upperBound)) else { return false }
        template.title?.append(to: &title, payload: payload, text: text)
        template.subtitle?.append(to: &subtitle, payload: payload, text: text)
        template.body?.append(to: &body, payload: payload, text: text)
        return true
    }

    /// Reads a `raw` kind's payload; false when it is no JSON object.
    package mutating func readRaw(text: [UInt8], payload range: TextRange) -> Bool {
        payload.read(text, Int(range.lowerBound)..<Int(range.upperBound))
    }
}
