import Credentials

/// The rules that APNs holds requests to, in the order in which a request is judged. Nil is "nothing against it".
struct APNSRequestRules {
    private let topics: Set<[UInt8]>
    private let isStrict: Bool

    init(topics: Set<String>, isStrict: Bool) {
        self.topics = Set(topics.map { Array($0.utf8) })
        self.isStrict = isStrict
    }

    /// What is wrong with method and path.
    static func faultOfTarget(_ stream: ServerStream, _ fields: APNSRequestFields) -> APNSAnswer? {
        guard let token = fields.deviceToken(in: stream) else { return .rejected(status: 404, reason: "BadPath") }
        guard let method = fields.method, stream.holds("POST", at: method) else {
            return .rejected(status: 405, reason: "MethodNotAllowed")
        }
        return token.isEmpty ? .rejected(status: 400, reason: "MissingDeviceToken") : nil
    }

    /// What is wrong with headers, payload and device token of a request whose provider token was accepted.
    func faultOfRequest(_ stream: ServerStream, _ fields: APNSRequestFields, now: Int64) -> APNSAnswer? {
        if isStrict, let answer = APNSStrictness.fault(of: stream, fields, now: now) { return answer }
        if fields.hasDuplicate { return .rejected(status: 400, reason: "DuplicateHeaders") }
        if let answer = Self.faultOfNumbers(stream, fields) { return answer }
        guard let name = fields.pushType, let type = APNSPushTypeRule.named(stream.headerBytes[name]) else {
            return .rejected(status: 400, reason: "InvalidPushType")
        }
        // Absent, the priority is 10.
        if !type.allowsImmediate && fields.priority.map({ stream.holds("10", at: $0) }) ?? true {
            return .rejected(status: 400, reason: "BadPriority")
        }
        return faultOfTopic(stream, fields, type) ?? Self.faultOfPayload(stream, type)
            ?? Self.faultOfDeviceToken(stream, fields)
    }

    private static func faultOfNumbers(_ stream: ServerStream, _ fields: APNSRequestFields) -> APNSAnswer? {
        if let value = fields.identifier, !isIdentifier(stream.headerBytes[value]) {
            return .rejected(status: 400, reason: "BadMessageId")
        }
        if let value = fields.expiration, !isNumber(stream.headerBytes[value]) {
            return .rejected(status: 400, reason: "BadExpirationDate")
        }
        if let value = fields.priority, !stream.holds("10", at: value), !stream.holds("5", at: value),
            !stream.holds("1", at: value)
        {
            return .rejected(status: 400, reason: "BadPriority")
        }
        if let value = fields.collapse, value.count > 64 { return .rejected(status: 400, reason: "BadCollapseId") }
        return nil
    }

    private func faultOfTopic(
        _ stream: ServerStream, _ fields: APNSRequestFields, _ type: APNSPushTypeRule
    ) -> APNSAnswer? {
        guard let value = fields.topic, !value.isEmpty else {
            return .rejected(status: 400, reason: "MissingTopic")
        }
        let topic = stream.headerBytes[value]
        if isStrict, !APNSStrictness.fits(topic, type) { return .rejected(status: 400, reason: "TopicDisallowed") }
        if topics.isEmpty { return nil }
        let suffix = UnsafeBufferPointer(
            start: type.topicSuffix.utf8Start, count: type.topicSuffix.utf8CodeUnitCount)
        let fits = topic.suffix(suffix.count).elementsEqual(suffix)
        let allowed = fits && topics.contains(Array(topic.dropLast(suffix.count)))
        return allowed ? nil : .rejected(status: 400, reason: "TopicDisallowed")
    }

    private static func faultOfPayload(_ stream: ServerStream, _ type: APNSPushTypeRule) -> APNSAnswer? {
        if stream.bodySize == 0 { return .rejected(status: 400, reason: "PayloadEmpty") }
        if stream.bodySize > type.payloadLimit { return .rejected(status: 413, reason: "PayloadTooLarge") }
        let isObject = stream.body.withUnsafeBufferPointer { JSONScanner.isObject($0) }
        // Apple has no published reason for a body that is no JSON object; this one is the stand-in's own.
        return isObject ? nil : .rejected(status: 400, reason: "BadPayload")
    }

    private static func faultOfDeviceToken(_ stream: ServerStream, _ fields: APNSRequestFields) -> APNSAnswer? {
        guard let range = fields.deviceToken(in: stream) else { return nil }
        let token = stream.headerBytes[range]
        guard token.count % 2 == 0, token.count <= 400, token.allSatisfy(isHex) else {
            return .rejected(status: 400, reason: "BadDeviceToken")
        }
        return nil
    }

    private static func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
        !text.isEmpty && text.count <= 19 && text.allSatisfy { $0 >= 48 && $0 <= 57 }
    }

    /// Whether `text` is a canonical UUID in lower case (8-4-4-4-12).
    private static func isIdentifier(_ text: ArraySlice<UInt8>) -> Bool {
        guard text.count == 36 else { return false }
        for (index, byte) in text.enumerated() {
            let isDash = index == 8 || index == 13 || index == 18 || index == 23
            guard isDash ? byte == UInt8(ascii: "-") : isHex(byte) && !(byte >= 65 && byte <= 70) else { return false }
        }
        return true
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...70, 97...102: true
        default: false
        }
    }
}
