/// A number that the database gave to a kind.
package typealias KindNumber = Int32

/// How a kind's notifications are shown.
package enum Presentation: Equatable, Sendable {
    /// Fixed texts, or keys of the app's, over the closed payload, and a dictionary beside them; the alert of a code
    /// too.
    case template(Template)
    /// The producer's own provider payloads, by provider name at the top level of the payload.
    case raw
    /// In no way that this worker knows, and what it is that it cannot read: its notifications wait for a worker or a
    /// catalog that is another.
    case unreadable(String)
}

/// A kind of notification as the catalog declares it, as far as sending needs it.
package struct Kind: Equatable, Sendable {
    /// The number that outbox rows name it by.
    package let number: KindNumber
    /// The name that producers use.
    package let name: String
    /// How it is shown.
    package let presentation: Presentation
    /// The keys of its payload.
    package let keys: [PayloadKey]
    /// The key beside `aps` that holds the dictionary; empty puts it at the top level.
    package let container: String
    /// The dictionary; nil for the whole payload.
    package let data: [DataMember]?
    /// All keys of an FCM message, nothing added; nil for the usual ones.
    package let fcmData: [DataMember]?
    /// The version of the mapping at the time when the catalog was read, as JSON string content; empty when the kind
    /// does not carry it.
    package let mappingVersion: [UInt8]
    /// APNs push type (`alert`, `background`, …).
    package let pushType: String
    /// Provider priority: 10, 5 or 1.
    package let priority: Int
    /// `passive`, `active`, `time-sensitive` or `critical`; nil leaves it to the device.
    package let interruptionLevel: String?
    /// The app's category of the notification; nil for none.
    package let category: String?
    /// The sound's name, or `default`; nil for silence.
    package let sound: String?
    /// Whether the row's thread groups the notification on the device.
    package let usesThread: Bool
    /// Whether an app extension may change the notification before it is shown.
    package let isMutable: Bool
    /// How long the provider keeps the notification: nil for what remains of the deadline, zero for now or never.
    package let providerLife: Duration?
    /// The kind's own retry policy; nil for the worker's default.
    package let retry: RetryPolicy?

    /// What keeps this worker from rendering it; nil for nothing.
    package var unreadable: String? {
        if case .unreadable(let what) = presentation { what } else { nil }
    }

    /// A kind as loaded from the catalog.
    package init(
        number: KindNumber, name: String, presentation: Presentation, keys: [PayloadKey] = [], container: String = "",
        data: [DataMember]? = nil, fcmData: [DataMember]? = nil, mappingVersion: String = "",
        pushType: String = "alert", priority: Int = 10, interruptionLevel: String? = nil, category: String? = nil,
        sound: String? = nil, usesThread: Bool = false, isMutable: Bool = false, providerLife: Duration? = nil,
        retry: RetryPolicy? = nil
    ) {
        self.number = number
        self.name = name
        self.presentation = presentation
        self.keys = keys
        self.container = container
        self.data = data
        self.fcmData = fcmData
        self.mappingVersion = Array(mappingVersion.utf8)
        self.pushType = pushType
        self.priority = priority
        self.interruptionLevel = interruptionLevel
        self.category = category
        self.sound = sound
        self.usesThread = usesThread
        self.isMutable = isMutable
        self.providerLife = providerLife
        self.retry = retry
    }
}
