/// What is refused on top in strict mode: slips that the real service is known or supposed to refuse, delay or drop,
/// and that no client should make.
enum APNSStrictness {
    private static let prefix = Array("apns-".utf8)
    /// The headers of device pushes (Apple: Sending notification requests to APNs).
    private static let known = [
        "apns-collapse-id", "apns-expiration", "apns-id", "apns-priority", "apns-push-type", "apns-topic",
    ].map { Array($0.utf8) }
    /// How far in the past and in the future an expiration makes sense, in seconds: APNs stores for 30 days.
    private static let past: Int64 = 86_400
    private static let future: Int64 = 366 * 86_400

    /// What is wrong with headers that would pass otherwise.
    static func fault(of stream: ServerStream, _ fields: APNSRequestFields, now: Int64) -> APNSAnswer? {
        var names: Set<[UInt8]> = []
        for header in stream.headers {
            let name = Array(stream.headerBytes[header.name])
            guard names.insert(name).inserted else { return .rejected(status: 400, reason: "DuplicateHeaders") }
            // Apple documents no reason for it; this one is the stand-in's own.
            if name.starts(with: prefix), !known.contains(name) {
                return .rejected(status: 400, reason: "UnknownHeader")
            }
        }
        // Seconds of 1970 or milliseconds are numbers, and never what was meant.
        if let value = fields.expiration, let seconds = Int64(stream.text(value)), seconds != 0,
            seconds < now - past || seconds > now + future
        {
            return .rejected(status: 400, reason: "BadExpirationDate")
        }
        if let value = fields.pushType, stream.holds("background", at: value),
            !(fields.priority.map { stream.holds("5", at: $0) } ?? false)
        {
            return .rejected(status: 400, reason: "BadPriority")
        }
        return nil
    }

    /// Whether `topic` ends in the suffix of `type`, and in that of no other type where it has none.
    static func fits(_ topic: ArraySlice<UInt8>, _ type: APNSPushTypeRule) -> Bool {
        guard type.topicSuffix.utf8CodeUnitCount == 0 else { return ends(topic, in: type) }
        return !APNSPushTypeRule.all.contains { $0.topicSuffix.utf8CodeUnitCount > 0 && ends(topic, in: $0) }
    }

    private static func ends(_ topic: ArraySlice<UInt8>, in type: APNSPushTypeRule) -> Bool {
        let suffix = UnsafeBufferPointer(
            start: type.topicSuffix.utf8Start, count: type.topicSuffix.utf8CodeUnitCount)
        return topic.count > suffix.count && topic.suffix(suffix.count).elementsEqual(suffix)
    }
}
