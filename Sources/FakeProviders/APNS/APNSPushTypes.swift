/// The push types that APNs knows: topic suffix, whether priority 10 is an error, payload limit. Kept apart from the
/// table of the sender's side on purpose, so that a slip in one is found by the other.
struct APNSPushTypeRule {
    let name: StaticString
    let topicSuffix: StaticString
    let allowsImmediate: Bool
    let payloadLimit: Int

    static let all: [APNSPushTypeRule] = [
        APNSPushTypeRule("alert", ""),
        APNSPushTypeRule("background", "", allowsImmediate: false),
        APNSPushTypeRule("voip", ".voip", payloadLimit: 5120),
        APNSPushTypeRule("complication", ".complication"),
        APNSPushTypeRule("fileprovider", ".pushkit.fileprovider"),
        APNSPushTypeRule("mdm", ""),
        APNSPushTypeRule("location", ".location-query"),
        APNSPushTypeRule("liveactivity", ".push-type.liveactivity"),
        APNSPushTypeRule("pushtotalk", ".voip-ptt"),
        APNSPushTypeRule("widgets", ".push-type.widgets"),
        APNSPushTypeRule("controls", ".push-type.controls"),
    ]

    private init(
        _ name: StaticString, _ topicSuffix: StaticString, allowsImmediate: Bool = true, payloadLimit: Int = 4096
    ) {
        self.name = name
        self.topicSuffix = topicSuffix
        self.allowsImmediate = allowsImmediate
        self.payloadLimit = payloadLimit
    }

    static func named(_ name: ArraySlice<UInt8>) -> APNSPushTypeRule? {
        all.first { rule in
            name.elementsEqual(
                UnsafeBufferPointer(start: rule.name.utf8Start, count: rule.name.utf8CodeUnitCount))
        }
    }
}
