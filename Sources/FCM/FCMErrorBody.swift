import Credentials

/// What an error answer of FCM says, as far as it decides anything. Its `error.message` can echo what was sent; it is
/// looked at for two or three words and not kept.
package struct FCMErrorBody: Equatable, Sendable {
    /// What shows whom an ambiguous code speaks of. The case's name becomes part of the reason.
    package enum Evidence: Equatable, Sendable {
        /// A field of the message other than its token is at fault.
        case payload
        /// The token is at fault, and nothing else is named.
        case token
        /// One device's quota is used up.
        case device
    }

    /// `errorCode` of FCM's own detail; nil without one.
    package let code: String?
    /// `error.status`: Google's word for the class of error.
    package let status: String?
    /// What else it shows.
    package let evidence: Evidence?

    /// Details of one answer that are looked at; Google sends one to three.
    private static let detailLimit = 32

    /// Reads `body`. What is not JSON of that form (HTML of a front, nothing at all, an attack) says nothing.
    package init(_ body: [UInt8]) {
        guard let error = JSONElement(body)?.member("error") else {
            code = nil
            status = nil
            evidence = nil
            return
        }
        var details = Details()
        for detail in error.member("details")?.elements(limit: Self.detailLimit) ?? [] { details.read(detail) }
        code = details.code
        status = error.member("status")?.string
        evidence = details.evidence(Words(error.member("message")?.content ?? []))
    }

    /// What the list of details has shown so far.
    private struct Details {
        var code: String?
        private var namesToken = false
        private var namesOtherField = false
        private var namesDevice = false
        private var isProjectQuota = false

        mutating func read(_ detail: JSONElement) {
            guard let type = detail.member("@type")?.string else { return }
            switch type.split(separator: "/").last {
            case "google.firebase.fcm.v1.FcmError":
                code = code ?? detail.member("errorCode")?.string
            case "google.rpc.BadRequest":
                for violation in list(detail, "fieldViolations") {
                    switch violation.member("field")?.string {
                    case "message.token", "message.fid": namesToken = true
                    default: namesOtherField = true
                    }
                }
            case "google.rpc.QuotaFailure":
                for violation in list(detail, "violations") {
                    let texts = [violation.member("subject"), violation.member("description")]
                    if texts.contains(where: { Words($0?.content ?? []).hold("device") }) { namesDevice = true }
                }
            case "google.rpc.ErrorInfo":
                // The project's rate, as Google's front reports it: no FcmError beside it.
                if detail.member("reason")?.string == "RATE_LIMIT_EXCEEDED" { isProjectQuota = true }
            default: break
            }
        }

        private func list(_ detail: JSONElement, _ name: StaticString) -> [JSONElement] {
            detail.member(name)?.elements(limit: FCMErrorBody.detailLimit) ?? []
        }

        func evidence(_ message: Words) -> Evidence? {
            if namesOtherField { return .payload }
            // FCM tells of a broken token in its message alone: "The registration token is not a valid …".
            let speaksOfToken = message.hold("registration token") || message.hold("installation id")
            if namesToken || (code == "INVALID_ARGUMENT" && speaksOfToken && message.hold("valid")) { return .token }
            if !isProjectQuota && (namesDevice || message.hold("device")) { return .device }
            return nil
        }
    }

    /// A text that is searched for words, whatever their case.
    private struct Words {
        let text: [UInt8]

        init(_ text: ArraySlice<UInt8>) {
            self.text = text.map { $0 >= 65 && $0 <= 90 ? $0 | 0x20 : $0 }
        }

        /// Whether `word` (lower case) occurs.
        func hold(_ word: StaticString) -> Bool {
            let wanted = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
            guard text.count >= wanted.count else { return false }
            return (0...text.count - wanted.count).contains { text[$0..<$0 + wanted.count].elementsEqual(wanted) }
        }
    }
}
