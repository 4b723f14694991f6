/// A push type of APNs: what goes with it. One row of a closed table (Apple: Sending notification requests to APNs).
package struct APNSPushType: Equatable, Sendable {
    /// Which values `apns-priority` may take.
    package enum PriorityRule: Equatable, Sendable {
        /// 10, 5 or 1.
        case any
        /// 5 or 1; Apple calls 10 an error.
        case neverImmediate
        /// 10 or 5.
        case immediateOrNormal
    }

    /// The value of `apns-push-type`.
    package let name: String
    /// What follows the bundle id in `apns-topic`.
    package let topicSuffix: String
    /// Priorities that go with it.
    package let priorities: PriorityRule
    /// Most bytes of the payload.
    package let payloadLimit: Int
    /// Whether the payload shows something; a background push must not.
    package let isVisible: Bool

    private init(
        _ name: String, suffix: String = "", priorities: PriorityRule = .any, payloadLimit: Int = 4096,
        isVisible: Bool = true
    ) {
        self.name = name
        topicSuffix = suffix
        self.priorities = priorities
        self.payloadLimit = payloadLimit
        self.isVisible = isVisible
    }

    /// All push types.
    package static let all: [APNSPushType] = [
        APNSPushType("alert"),
        APNSPushType("background", priorities: .neverImmediate, isVisible: false),
        APNSPushType("voip", suffix: ".voip", payloadLimit: 5120),
        APNSPushType("complication", suffix: ".complication"),
        APNSPushType("fileprovider", suffix: ".pushkit.fileprovider"),
        APNSPushType("mdm"),
        APNSPushType("location", suffix: ".location-query", priorities: .immediateOrNormal),
        APNSPushType("liveactivity", suffix: ".push-type.liveactivity", priorities: .immediateOrNormal),
        APNSPushType("pushtotalk", suffix: ".voip-ptt"),
        APNSPushType("widgets", suffix: ".push-type.widgets"),
        APNSPushType("controls", suffix: ".push-type.controls"),
    ]

    /// The push type of that name.
    package static func named(_ name: String) -> APNSPushType? {
        all.first { $0.name == name }
    }

    /// Whether `priority` goes with this push type.
    package func allows(priority: Int) -> Bool {
        switch priorities {
        case .any: priority == 10 || priority == 5 || priority == 1
        case .neverImmediate: priority == 5 || priority == 1
        case .immediateOrNormal: priority == 10 || priority == 5
        }
    }

    /// What is wrong with a kind of this push type and priority, for the check of the catalog; nil when nothing is.
    package static func fault(pushType: String, priority: Int) -> String? {
        guard let type = named(pushType) else { return "APNs has no push type \(pushType)" }
        return type.allows(priority: priority) ? nil : "priority \(priority) does not go with push type \(pushType)"
    }
}
