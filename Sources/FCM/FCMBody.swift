import OutboxCore

/// Writes the JSON body of a message byte by byte into memory that serves one notification after the other: all of it
/// but the target, which differs from request to request.
///
/// A message is data only: Android hands it to the app in any state, and the app shows it. Values are strings, as FCM
/// demands.
struct FCMBody {
    /// Why a notification cannot become a message; the case's name is the reason in the ledger.
    enum Fault: String {
        /// The payload is not what its kind promises.
        case malformed = "payload_malformed"
        /// A payload key is one of Google's own words.
        case reservedKey = "payload_key_reserved"
        /// More keys and values than FCM takes.
        case tooLarge = "payload_too_large"
    }

    /// What follows the target's own text, written last: the end of that string, data, android, and the end of all.
    private(set) var bytes: [UInt8] = []
    private var content = PushContent()
    private var fields = PayloadReader()
    private var value: [UInt8] = []
    private var size = 0

    /// Most bytes of keys and values (Firebase, FCM error codes: 4096 for a message to a token).
    static let sizeLimit = 4096
    /// Longest life that FCM grants, in seconds (28 days).
    static let lifeLimit: Int64 = 2_419_200

    /// Writes the body of a notification; a fault when none comes of it.
    mutating func write(_ push: OutgoingPush, text: [UInt8]) -> Fault? {
        bytes.removeAll(keepingCapacity: true)
        size = 0
        append("\"")
        switch push.kind.presentation {
        case .raw:
            if let fault = writeRaw(push, text) { return fault }
        case .unreadable:
            return .malformed
        case .template(let template):
            guard content.render(template, text: text, payload: push.dispatch.payload) else { return .malformed }
            append(",\"data\":{")
            if let exact = push.kind.fcmData {
                for member in exact { append(member, push, text, besideOwn: false) }
            } else if template.isBadgeOnly {
                appendIdentifier(push)
                appendBadge(push)
            } else if let fault = appendData(push, template, text) {
                return fault
            }
            append("},\"android\":{")
            appendDelivery(push)
            append("}")
        }
        append("}}")
        return size > Self.sizeLimit ? .tooLarge : nil
    }

    // MARK: Template

    /// Postbell's own keys of a message's data, for the documentation as well. A payload key of the same name steps
    /// aside: it is sent as `payload.<name>`.
    static let ownKeys: [StaticString] = [
        "notification_id", "title", "subtitle", "body", "title_loc_key", "title_loc_args", "subtitle_loc_key",
        "subtitle_loc_args", "body_loc_key", "body_loc_args", "badge", "sound", "thread", "category", "silent", "tag",
    ]

    private mutating func appendData(_ push: OutgoingPush, _ template: Template, _ text: [UInt8]) -> Fault? {
        let dispatch = push.dispatch
        appendIdentifier(push)
        if push.kind.pushType != "background" { appendVisible(push, isLocalized: template.isLocalized, text) }
        if dispatch.silent { appendContent("silent", "1") }
        // Takes the place of what the app has shown under it before, as the collapse id does on Apple's devices.
        appendText("tag", text, dispatch.collapseKey)
        if let data = push.kind.data {
            for member in data { append(member, push, text, besideOwn: true) }
            return nil
        }
        for field in content.payload.fields {
            if text[field.value].elementsEqual("null".utf8) { continue }
            guard !Self.isReserved(text[field.key]) else { return .reservedKey }
            append(field, text)
        }
        return nil
    }

    /// The same for all devices and attempts: an app that knows it already has been sent it twice.
    private mutating func appendIdentifier(_ push: OutgoingPush) {
        open("notification_id")
        push.dispatch.notification.append(to: &bytes)
        size += 36
        append("\"")
    }

    private mutating func appendBadge(_ push: OutgoingPush) {
        if let badge = push.dispatch.badge { appendContent("badge", Array(String(badge).utf8)) }
    }

    private mutating func appendVisible(_ push: OutgoingPush, isLocalized: Bool, _ text: [UInt8]) {
        if isLocalized {
            appendKeys()
        } else {
            appendContent("title", content.title)
            appendContent("subtitle", content.subtitle)
            appendContent("body", content.body)
        }
        appendBadge(push)
        if let sound = push.kind.sound, !push.dispatch.silent { appendText("sound", sound) }
        if push.kind.usesThread { appendText("thread", text, push.dispatch.thread) }
        if let category = push.kind.category { appendText("category", category) }
    }

    private mutating func appendKeys() {
        appendContent("title_loc_key", content.title)
        appendArguments("title_loc_args", content.titleArguments)
        appendContent("subtitle_loc_key", content.subtitle)
        appendArguments("subtitle_loc_args", content.subtitleArguments)
        appendContent("body_loc_key", content.body)
        appendArguments("body_loc_args", content.bodyArguments)
    }

    /// Arguments as the text of a JSON array, which stands in a string itself.
    private mutating func appendArguments(_ name: StaticString, _ list: [UInt8]) {
        guard !list.isEmpty else { return }
        open(name)
        append("[")
        JSONText.appendEscaped(list[...], to: &bytes)
        append("]\"")
        size += list.count + 2
    }

    /// A member of a declared dictionary as a string; nothing where it is absent. `besideOwn`: a name of Postbell's own
    /// steps aside.
    private mutating func append(_ member: DataMember, _ push: OutgoingPush, _ text: [UInt8], besideOwn: Bool) {
        value.removeAll(keepingCapacity: true)
        guard content.append(member.value, of: push.dispatch, push.kind, text: text, to: &value) else { return }
        append(bytes.last == UInt8(ascii: "{") ? "\"" : ",\"")
        if besideOwn { stepAside(member.name[...]) }
        bytes.append(contentsOf: member.name)
        append("\":\"")
        size += member.name.count
        appendValue(value[...])
    }

    /// JSON as the inside of a string, and the end of that: strings as they are, ids of a list with commas between
    /// them, everything else as its JSON text.
    private mutating func appendValue(_ json: ArraySlice<UInt8>) {
        switch json.first {
        case UInt8(ascii: "\""):
            let inside = json.dropFirst().dropLast()
            bytes.append(contentsOf: inside)
            size += JSONText.unescapedCount(inside)
        case UInt8(ascii: "["):
            for byte in json where Self.isOfList(byte) {
                bytes.append(byte)
                size += 1
            }
        default:
            JSONText.appendEscaped(json, to: &bytes)
            size += json.count
        }
        append("\"")
    }

    /// Whether a byte of a list of UUIDs is one of theirs, or the comma between two.
    private static func isOfList(_ byte: UInt8) -> Bool {
        (byte >= 48 && byte <= 57) || (byte >= 97 && byte <= 102) || (byte >= 65 && byte <= 70)
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ",")
    }

    private mutating func stepAside(_ key: ArraySlice<UInt8>) {
        guard Self.ownKeys.contains(where: { Self.isEqual(key, $0) }) else { return }
        append("payload.")
        size += 8
    }

    /// A payload value as a string.
    private mutating func append(_ field: PayloadField, _ text: [UInt8]) {
        let key = text[field.key]
        append(",\"")
        stepAside(key)
        bytes.append(contentsOf: key)
        append("\":\"")
        size += key.count
        appendValue(text[field.value])
    }

    /// Google's own words among the keys of data; one of them makes FCM refuse the whole message (Firebase, FCM error
    /// codes).
    static func isReserved(_ key: ArraySlice<UInt8>) -> Bool {
        isEqual(key, "from") || isEqual(key, "message_type") || key.starts(with: "google".utf8)
            || key.starts(with: "gcm".utf8)
    }

    /// What makes a kind one that FCM cannot take; nil when nothing does. `define_kind` refuses the same.
    static func fault(of kind: Kind) -> String? {
        if let key = kind.keys.first(where: { isReserved(Array($0.name.utf8)[...]) }) {
            return "payload key \"\(key.name)\" is reserved by FCM"
        }
        let member = ((kind.data ?? []) + (kind.fcmData ?? [])).first { isReserved($0.name[...]) }
        return member.map { "member \"\(String(decoding: $0.name, as: UTF8.self))\" is reserved by FCM" }
    }

    // MARK: Raw

    /// Members of a message that a producer may write. What addresses it (`token`, `fid`, `topic`, `condition`) is not
    /// among them, in no spelling: it would send the message to somebody else.
    private static let rawMembers: [StaticString] = [
        "data", "notification", "apns", "webpush", "fcmOptions", "fcm_options", "androidV2", "android_v2",
    ]

    /// The producer's own message stands under `fcm`, word for word; life and priority are the kind's, as they are
    /// headers on Apple's side.
    private mutating func writeRaw(_ push: OutgoingPush, _ text: [UInt8]) -> Fault? {
        guard content.readRaw(text: text, payload: push.dispatch.payload),
            let message = content.payload.field("fcm", in: text), fields.read(text, message.value)
        else { return .malformed }
        var android: Range<Int>?
        for field in fields.fields {
            let key = text[field.key]
            if Self.isEqual(key, "android") {
                guard android == nil else { return .malformed }
                android = field.value
                continue
            }
            guard let name = Self.rawMembers.first(where: { Self.isEqual(key, $0) }) else { return .malformed }
            append(",\"")
            append(name)
            append("\":")
            bytes.append(contentsOf: text[field.value])
        }
        guard countRaw(text, message.value) else { return .malformed }
        append(",\"android\":{")
        appendDelivery(push)
        if let android {
            guard fields.read(text, android) else { return .malformed }
            for field in fields.fields {
                let key = text[field.key]
                // An escape could hide a name that is left out here.
                guard !key.contains(UInt8(ascii: "\\")) else { return .malformed }
                if Self.isEqual(key, "priority") || Self.isEqual(key, "ttl") { continue }
                append(",\"")
                bytes.append(contentsOf: key)
                append("\":")
                bytes.append(contentsOf: text[field.value])
            }
        }
        append("}")
        return nil
    }

    /// Counts the keys and values of `data` and `notification`; false when one of them is no object.
    private mutating func countRaw(_ text: [UInt8], _ message: Range<Int>) -> Bool {
        for name in ["data", "notification"] {
            guard fields.read(text, message) else { return false }
            guard let member = fields.field(name, in: text) else { continue }
            guard fields.read(text, member.value) else { return false }
            for field in fields.fields {
                size += JSONText.unescapedCount(text[field.key])
                size +=
                    field.isString
                    ? JSONText.unescapedCount(text[field.value].dropFirst().dropLast()) : field.value.count
            }
        }
        return true
    }

    // MARK: Both

    /// How urgently FCM delivers it and how long it keeps it. Silence and every priority below the highest leave a
    /// sleeping device asleep. No collapse key: FCM keeps four of them per device and forgets any of the others
    /// (reference of AndroidConfig), so a key per conversation would lose notifications.
    private mutating func appendDelivery(_ push: OutgoingPush) {
        let isHigh = push.kind.priority == 10 && !push.dispatch.silent
        append(isHigh ? "\"priority\":\"HIGH\",\"ttl\":\"" : "\"priority\":\"NORMAL\",\"ttl\":\"")
        bytes.append(contentsOf: String(Self.life(push)).utf8)
        append("s\"")
    }

    /// Whole seconds that FCM keeps it: what remains until the deadline, or the kind's own life; 0 for now or never.
    static func life(_ push: OutgoingPush) -> Int64 {
        let life = push.kind.providerLife ?? (push.dispatch.expiresAt - push.now)
        let microseconds = max(0, life.wholeMicroseconds)
        return min(lifeLimit, microseconds / 1_000_000 + (microseconds % 1_000_000 > 0 ? 1 : 0))
    }

    private mutating func appendText(_ name: StaticString, _ text: [UInt8], _ range: TextRange) {
        guard !range.isEmpty else { return }
        open(name)
        JSONText.appendEscaped(text[Int(range.lowerBound)..<Int(range.upperBound)], to: &bytes)
        size += range.count
        append("\"")
    }

    private mutating func appendText(_ name: StaticString, _ value: String) {
        open(name)
        JSONText.appendEscaped(value, to: &bytes)
        size += value.utf8.count
        append("\"")
    }

    private mutating func appendContent(_ name: StaticString, _ value: StaticString) {
        open(name)
        append(value)
        size += value.utf8CodeUnitCount
        append("\"")
    }

    /// A value that is JSON string content already; nothing for an empty one.
    private mutating func appendContent(_ name: StaticString, _ value: [UInt8]) {
        guard !value.isEmpty else { return }
        open(name)
        bytes.append(contentsOf: value)
        size += JSONText.unescapedCount(value[...])
        append("\"")
    }

    private mutating func open(_ name: StaticString) {
        append(bytes.last == UInt8(ascii: "{") ? "\"" : ",\"")
        append(name)
        append("\":\"")
        size += name.utf8CodeUnitCount
    }

    private mutating func append(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private static func isEqual(_ key: ArraySlice<UInt8>, _ word: StaticString) -> Bool {
        key.elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}
