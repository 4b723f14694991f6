package import HTTP2
package import OutboxCore

/// A notification for an encoder, with the text that its ranges point into: the same one for every provider.
package struct MadePush {
    package var kind: Kind
    package var provider = "apns"
    package var environment = "production"
    package var app: String
    package var payload = "{}"
    package var collapseKey = ""
    package var thread = ""
    package var badge: Int32?
    package var silent = false
    package var tokens = ["00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"]
    package var now = Timestamp(microseconds: 1_700_000_000_000_000)
    package var expiresAt = Timestamp(microseconds: 1_700_003_600_500_000)
    package var notification = Identifier(high: 0x0189_C4CE_7E2C_7BD5, low: 0x9F8C_7F5A_3A1B_2C3D)

    /// A notification of `kind` for the route of `app`; everything else can be set.
    package init(
        kind: Kind = Kind(number: 1, name: "test", presentation: .template(Template(title: nil))),
        app: String = "com.example.app"
    ) {
        self.kind = kind
        self.app = app
    }

    /// A template kind with these texts.
    package static func template(
        title: String? = nil, subtitle: String? = nil, body: String? = nil,
        _ change: (TemplateText?, TemplateText?, TemplateText?) -> Kind = Self.plain
    ) -> MadePush {
        MadePush(
            kind: change(
                title.flatMap { TemplateText($0) }, subtitle.flatMap { TemplateText($0) },
                body.flatMap { TemplateText($0) }))
    }

    package static func plain(_ title: TemplateText?, _ subtitle: TemplateText?, _ body: TemplateText?) -> Kind {
        Kind(
            number: 1, name: "test",
            presentation: .template(Template(title: title, subtitle: subtitle, body: body)))
    }

    /// What encoding came to.
    package struct Encoded {
        package var refusal: Outcome?
        package var targetRefusals: [Outcome] = []
        package var batch = HTTPRequestBatch()

        package init() {}

        package func text(_ slice: ByteSlice) -> String {
            String(decoding: batch.bytes[slice.indices], as: UTF8.self)
        }

        /// The body of the first request; the refusal's reason when there is none.
        package var body: String { batch.requests.first.map { text($0.body) } ?? refusal?.reason ?? "nothing" }

        /// All headers of a request by name.
        package func headers(_ index: Int = 0) -> [String: String] {
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

    /// Encodes by the two steps of a provider, whoever takes them.
    package func encode(
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
            prior: false, cursor: .start, verdict: .send, kind: kind.number, createdAt: now, expiresAt: expiresAt,
            payload: append(payload), collapseKey: append(collapseKey), thread: append(thread), badge: badge,
            silent: silent, heldUntil: nil, targets: 0..<targets.count)
        let route = Route(number: 1, provider: provider, environment: environment, app: app)
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
