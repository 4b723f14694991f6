/// A push type of APNs: what goes with it. One row of a closed table (Apple: Sending notification requests to APNs);
/// the schema has the same one for `define_kind`, and a test holds the two together.
package struct APNSPushType: Equatable, Sendable {
    /// What the payload of a push type holds.
    package enum Form: Equatable, Sendable {
        /// A text that the device shows.
        case alert
        /// What the app makes of it, a text among it: the system shows nothing by itself (PushKit).
        case app
        /// `content-available` and identifiers; a text, sound or badge is an error.
        case background
        /// Identifiers beside an empty `aps`; nothing is shown.
        case data
        /// Something that no template can write: `content-state` of a Live Activity, `content-changed` of a widget or
        /// control, `mdm` in the place of `aps`.
        case raw
    }

    /// The value of `apns-push-type`.
    package let name: String
    /// What follows the bundle id in `apns-topic`.
    package let topicSuffix: String
    /// Values of `apns-priority` that go with it.
    package let priorities: [Int]
    /// Most bytes of the payload.
    package let payloadLimit: Int
    /// What the payload holds.
    package let form: Form

    private init(
        _ name: String, _ form: Form, suffix: String = "", priorities: [Int] = [10, 5, 1], payloadLimit: Int = 4096
    ) {
        self.name = name
        self.form = form
        topicSuffix = suffix
        self.priorities = priorities
        self.payloadLimit = payloadLimit
    }

    /// All push types.
    package static let all: [APNSPushType] = [
        APNSPushType("alert", .alert),
        // Apple: always 5, and 10 is an error.
        APNSPushType("background", .background, priorities: [5]),
        APNSPushType("voip", .app, suffix: ".voip", payloadLimit: 5120),
        APNSPushType("complication", .data, suffix: ".complication"),
        APNSPushType("fileprovider", .data, suffix: ".pushkit.fileprovider"),
        // The topic is that of the device management certificate, as the device is registered.
        APNSPushType("mdm", .raw),
        APNSPushType("location", .data, suffix: ".location-query", priorities: [10, 5]),
        APNSPushType("liveactivity", .raw, suffix: ".push-type.liveactivity", priorities: [10, 5]),
        APNSPushType("pushtotalk", .data, suffix: ".voip-ptt"),
        APNSPushType("widgets", .raw, suffix: ".push-type.widgets"),
        APNSPushType("controls", .raw, suffix: ".push-type.controls"),
    ]

    /// The push type of that name.
    package static func named(_ name: String) -> APNSPushType? {
        all.first { $0.name == name }
    }

    /// Whether `priority` goes with this push type.
    package func allows(priority: Int) -> Bool {
        priorities.contains(priority)
    }
}
