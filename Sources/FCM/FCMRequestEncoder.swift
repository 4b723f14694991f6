package import HTTP2
package import OutboxCore

/// Turns notifications and targets into requests to FCM: what all targets share is written once, a target adds its
/// token in front of it.
package struct FCMRequestEncoder: CustomStringConvertible, CustomReflectable {
    /// Shortest and longest token, in bytes: what `device_register` takes. Google promises no length.
    package static let tokenLengths = 8...1024

    private let path: [UInt8]
    private var authorization = ""
    private var body = FCMBody()
    private var shared: Shared?

    /// What the requests of the batch being filled have in common.
    private struct Shared {
        let headers: Int32
        let path: ByteSlice
    }

    /// An encoder for messages of this project. `FCMConfiguration` has checked its id.
    package init(project: String) {
        path = Array("/v1/projects/\(project)/messages:send".utf8)
    }

    package var description: String { "encoder of messages to FCM" }

    /// Nothing: it holds an access token.
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Sets the whole value of `authorization` (`Bearer …`) for the requests to come.
    package mutating func setAuthorization(_ value: String) {
        guard value != authorization else { return }
        authorization = value
        shared = nil
    }

    /// Encodes what all targets of `push` share; an outcome refuses them all.
    package mutating func begin(
        _ push: OutgoingPush, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        if let fault = body.write(push, text: text) { return Outcome(.rejected, reason: fault.rawValue) }
        if shared == nil || requests.sharedHeaders.isEmpty { share(in: &requests) }
        return nil
    }

    /// Encodes the request for one target of the notification begun last; an outcome refuses the target.
    package mutating func add(
        _ target: ClaimedTarget, tag: UInt64, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        guard let shared else { preconditionFailure("a target is added after its notification was begun") }
        let token = text[Int(target.token.lowerBound)..<Int(target.token.upperBound)]
        guard let form = TokenForm(token) else {
            // Its form alone proves that FCM never issued it.
            return Outcome(.unregistered, reason: "token_malformed", proof: .proven)
        }
        let message = requests.append { bytes in
            bytes.append(contentsOf: form.isInstallation ? Self.installationStart : Self.tokenStart)
            if form.needsEscapes {
                JSONText.appendEscaped(token, to: &bytes)
            } else {
                bytes.append(contentsOf: token)
            }
            bytes.append(contentsOf: body.bytes)
        }
        requests.add(
            tag: tag, shared: shared.headers, path: shared.path, fields: Self.noFields, count: 0, body: message)
        return nil
    }

    private static let tokenStart = Array("{\"message\":{\"token\":\"".utf8)
    private static let installationStart = Array("{\"message\":{\"fid\":\"".utf8)
    private static let noFields = InlineArray<4, HTTPRequestField>(
        repeating: HTTPRequestField(HTTPFieldName(""), .empty))

    private mutating func share(in requests: inout HTTPRequestBatch) {
        let headers = requests.addSharedHeaders([
            HTTPHeader("authorization", authorization, isSensitive: true),
            HTTPHeader("content-type", "application/json"),
        ])
        shared = Shared(headers: headers, path: requests.append { $0.append(contentsOf: path) })
    }
}

/// What kind of token a text is, by its form alone.
private struct TokenForm {
    /// A Firebase Installation ID, which goes into a field of its own: 17 bytes that begin with the bits 0111, in
    /// base64url without padding (firebase-js-sdk, packages/installations). Registration tokens are longer by far.
    let isInstallation: Bool
    /// Whether it holds a quote or a backslash.
    let needsEscapes: Bool

    private static let installationLength = 22

    /// Nil for what is no token: printable ASCII without spaces, of a length that the registry takes.
    init?(_ token: ArraySlice<UInt8>) {
        guard FCMRequestEncoder.tokenLengths.contains(token.count), let first = token.first else { return nil }
        var isOdd = false
        var isWordy = true
        for byte in token {
            guard byte > 0x20, byte < 0x7F else { return nil }
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { isOdd = true }
            if !Self.isBase64URL(byte) { isWordy = false }
        }
        needsEscapes = isOdd
        isInstallation =
            isWordy && token.count == Self.installationLength && first >= UInt8(ascii: "c")
            && first <= UInt8(ascii: "f")
    }

    private static func isBase64URL(_ byte: UInt8) -> Bool {
        (byte >= 48 && byte <= 57) || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122)
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}
