import APNS
import HTTP2
import OutboxCore

/// A notification of one target for the encoder, with the text that its ranges point into.
struct MadePush {
    var kind = Kind(number: 1, name: "test", presentation: .template(Template(title: nil)))
    var app = "com.example.app"
    var payload = "{}"
    var collapseKey = ""
    var thread = ""
    var badge: Int32?
    var silent = false
    var tokens = ["00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"]
    var now = Timestamp(microseconds: 1_700_000_000_000_000)
    var expiresAt = Timestamp(microseconds: 1_700_003_600_500_000)
    var notification = Identifier(high: 0x0189_C4CE_7E2C_7BD5, low: 0x9F8C_7F5A_3A1B_2C3D)

    /// A template kind with these texts.
    static func template(
        title: String? = nil, subtitle: String? = nil, body: String? = nil,
        _ change: (TemplateText?, TemplateText?, TemplateText?) -> Kind = Self.plain
    ) -> MadePush {
        MadePush(
            kind: change(
                title.flatMap { TemplateText($0) }, subtitle.flatMap { TemplateText($0) },
                body.flatMap { TemplateText($0) }))
    }

    static func plain(_ title: TemplateText?, _ subtitle: TemplateText?, _ body: TemplateText?) -> Kind {
        Kind(
            number: 1, name: "test",
            presentation: .template(Template(title: title, subtitle: subtitle, body: body)))
    }

    /// What encoding came to.
    struct Encoded {
        var refusal: Outcome?
        var targetRefusals: [Outcome] = []
        var batch = HTTPRequestBatch()

        func text(_ slice: ByteSlice) -> String {
            String(decoding: batch.bytes[slice.indices], as: UTF8.self)
        }

        /// The body of the first request; the refusal's reason when there is none.
        var body: String { batch.requests.first.map { text($0.body) } ?? refusal?.reason ?? "nothing" }

        /// All headers of a request by name.
        func headers(_ index: Int = 0) -> [String: String] {
            let request = batch.requests[index]
            var found: [String: String] = [:]
            for header in batch.sharedHeaders[Int(request.shared)] { found[header.name] = header.value }
            for place in 0..<request.fieldCount {
                let field = request.fields[place]
                found[field.name.text.description] = text(field.value)
            }
            return found
        }
    }

    func encoded() -> Encoded {
        var encoder = APNSRequestEncoder(topics: ["com.example.app"])
        encoder.setAuthorization("bearer test")
        var result = Encoded()
        encode(with: &encoder, into: &result)
        return result
    }

    func encode(with encoder: inout APNSRequestEncoder, into result: inout Encoded) {
        encode(into: &result) { push, text, batch in
            encoder.begin(push, text: text, into: &batch)
        } add: { target, tag, text, batch in
            encoder.add(target, tag: tag, text: text, into: &batch)
        }
    }

    /// Encodes by the two steps of a provider, whoever takes them.
    func encode(
        into result: inout Encoded,
        begin: (OutgoingPush, [UInt8], inout HTTPRequestBatch) -> Outcome?,
        add: (ClaimedTarget, UInt64, [UInt8], inout HTTPRequestBatch) -> Outcome?
    ) {
        var text = Array("noise".utf8)
        func append(_ piece: String) -> TextRange {
            let start = Int32(text.count)
            text += Array(piece.utf8)
            return start..<Int32(text.count)
        }
        let targets = tokens.enumerated().map { index, token in
            ClaimedTarget(
                device: Int64(index), token: append(token), tokenSequence: 1, spentAttempts: 0, notesSuccess: false)
        }
        let dispatch = ClaimedDispatch(
            notification: notification, share: Share(urgency: 0, tenant: 1), dueAt: now, attempt: 1, crashes: 0,
            prior: false, afterDevice: 0, verdict: .send, kind: kind.number, createdAt: now, expiresAt: expiresAt,
            payload: append(payload), collapseKey: append(collapseKey), thread: append(thread), badge: badge,
            silent: silent, heldUntil: nil, targets: 0..<targets.count)
        let route = Route(number: 1, provider: "apns", environment: "production", app: app)
        let push = OutgoingPush(dispatch: dispatch, kind: kind, route: route, now: now)
        result.refusal = begin(push, text, &result.batch)
        guard result.refusal == nil else { return }
        for (index, target) in targets.enumerated() {
            if let refusal = add(target, UInt64(index), text, &result.batch) {
                result.targetRefusals.append(refusal)
            }
        }
    }
}
