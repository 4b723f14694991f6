import Credentials
package import HTTP2
package import OutboxCore

/// Turns notifications and targets into requests to APNs: what all targets share is written once, a target adds its
/// path.
package struct APNSRequestEncoder: CustomStringConvertible, CustomReflectable {
    /// The parts of the notification begun last.
    private struct Shared {
        var headers: Int32 = 0
        var identifier = ByteSlice.empty
        var expiration = ByteSlice.empty
        var collapse = ByteSlice.empty
        var body = ByteSlice.empty
    }

    /// Headers that many requests of a batch share.
    private struct HeaderSet {
        let topic: String
        let type: String
        let priority: Int
        let headers: [HTTPHeader]
        /// Place in the batch being filled; nil when it is not in it yet.
        var index: Int32?
    }

    /// Longest device token, in hex digits. Apple promises no length; the longest seen have 160.
    package static let tokenLimit = 400
    /// Longest value of `apns-collapse-id`, in bytes.
    package static let collapseLimit = 64
    /// Sets of shared headers that are remembered; a catalog has a handful.
    private static let headerSetLimit = 256

    private let topics: Set<String>
    private var authorization = ""
    private var headerSets: [HeaderSet] = []
    private var body = APNSBody()
    private var shared = Shared()

    /// An encoder for a credential with these topics.
    package init(topics: [String]) {
        self.topics = Set(topics)
    }

    package var description: String { "encoder of pushes to APNs" }

    /// Nothing: it holds a provider token.
    package var customMirror: Mirror { Mirror(self, children: []) }

    /// Sets the provider token for the requests to come.
    package mutating func setAuthorization(_ value: String) {
        guard value != authorization else { return }
        authorization = value
        headerSets.removeAll()
    }

    /// Encodes what all targets of `push` share; an outcome refuses them all.
    package mutating func begin(
        _ push: OutgoingPush, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        let kind = push.kind
        guard let type = APNSPushType.named(kind.pushType) else {
            return Outcome(.rejected, reason: "push_type_unknown")
        }
        guard topics.contains(push.route.app) else { return Outcome(.misconfigured, reason: "no_credential") }
        guard body.write(push.dispatch, kind, type, text: text) else {
            return Outcome(.rejected, reason: "payload_malformed")
        }
        guard body.bytes.count <= type.payloadLimit else { return Outcome(.rejected, reason: "payload_too_large") }
        shared.headers = sharedHeaders(push.route.app, type, Self.priority(push, type), in: &requests)
        shared.identifier = requests.append { push.dispatch.notification.append(to: &$0) }
        let expiration = Self.expiration(push)
        shared.expiration = requests.append { $0.append(contentsOf: String(expiration).utf8) }
        shared.collapse = Self.appendCollapse(text, push.dispatch.collapseKey, to: &requests)
        shared.body = requests.append { $0.append(contentsOf: body.bytes) }
        return nil
    }

    /// Encodes the request for one target of the notification begun last; an outcome refuses the target.
    package mutating func add(
        _ target: ClaimedTarget, tag: UInt64, text: [UInt8], into requests: inout HTTPRequestBatch
    ) -> Outcome? {
        let token = text[Int(target.token.lowerBound)..<Int(target.token.upperBound)]
        guard Self.isWellFormed(token) else {
            // Its form alone proves that APNs never issued it.
            return Outcome(.unregistered, reason: "token_malformed", proof: .proven)
        }
        let path = requests.append { bytes in
            bytes.append(contentsOf: Self.devicePath)
            // Hex in either case is one token; Apple writes lower case. Digits keep their bit.
            for byte in token { bytes.append(byte | 0x20) }
        }
        let identifier = HTTPRequestField(Self.identifierName, shared.identifier)
        var fields = InlineArray<4, HTTPRequestField>(repeating: identifier)
        fields[1] = HTTPRequestField(Self.expirationName, shared.expiration)
        fields[2] = HTTPRequestField(Self.collapseName, shared.collapse)
        requests.add(
            tag: tag, shared: shared.headers, path: path, fields: fields, count: shared.collapse.isEmpty ? 2 : 3,
            body: shared.body)
        return nil
    }

    private static let devicePath = Array("/3/device/".utf8)
    private static let identifierName = HTTPFieldName("apns-id")
    private static let expirationName = HTTPFieldName("apns-expiration")
    private static let collapseName = HTTPFieldName("apns-collapse-id")

    private mutating func sharedHeaders(
        _ app: String, _ type: APNSPushType, _ priority: Int, in requests: inout HTTPRequestBatch
    ) -> Int32 {
        if requests.sharedHeaders.isEmpty {
            for index in headerSets.indices { headerSets[index].index = nil }
        }
        let known = headerSets.firstIndex { $0.priority == priority && $0.type == type.name && $0.topic == app }
        let place = known ?? remember(app, type, priority)
        if let index = headerSets[place].index { return index }
        let index = requests.addSharedHeaders(headerSets[place].headers)
        headerSets[place].index = index
        return index
    }

    private mutating func remember(_ app: String, _ type: APNSPushType, _ priority: Int) -> Int {
        if headerSets.count == Self.headerSetLimit { headerSets.removeAll() }
        let headers = [
            HTTPHeader("authorization", authorization, isSensitive: true),
            HTTPHeader("apns-topic", app + type.topicSuffix),
            HTTPHeader("apns-push-type", type.name),
            HTTPHeader("apns-priority", String(priority)),
        ]
        headerSets.append(
            HeaderSet(topic: app, type: type.name, priority: priority, headers: headers, index: nil))
        return headerSets.count - 1
    }

    /// The kind's priority; 5 at most for a silent notification and for push types that never wake a device.
    private static func priority(_ push: OutgoingPush, _ type: APNSPushType) -> Int {
        let wanted = push.dispatch.silent ? min(5, push.kind.priority) : push.kind.priority
        return type.allows(priority: wanted) ? wanted : 5
    }

    /// Absolute seconds: the deadline, or now and the kind's own life; 0 for now or never.
    private static func expiration(_ push: OutgoingPush) -> Int64 {
        guard let life = push.kind.providerLife else { return push.dispatch.expiresAt.secondsRoundedUp }
        return life == .zero ? 0 : (push.now + life).secondsRoundedUp
    }

    /// The collapse key where Apple takes it as it is, else a digest of it; nothing for none.
    private static func appendCollapse(
        _ text: [UInt8], _ range: TextRange, to requests: inout HTTPRequestBatch
    ) -> ByteSlice {
        guard !range.isEmpty else { return .empty }
        let key = text[Int(range.lowerBound)..<Int(range.upperBound)]
        let isPlain = key.count <= collapseLimit && key.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return requests.append { bytes in
            if isPlain { bytes.append(contentsOf: key) } else { SHA256.appendBase64URL(of: key, to: &bytes) }
        }
    }

    private static func isWellFormed(_ token: ArraySlice<UInt8>) -> Bool {
        guard !token.isEmpty, token.count % 2 == 0, token.count <= tokenLimit else { return false }
        return token.allSatisfy { byte in
            (byte >= 48 && byte <= 57) || (byte >= 97 && byte <= 102) || (byte >= 65 && byte <= 70)
        }
    }
}
