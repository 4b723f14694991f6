/// The type of a payload key; the database has checked each value against it.
package enum PayloadType: String, Equatable, Sendable {
    case uuid, int, slug, code, `enum`, timestamp, text, bool, uuids
}

/// A key that a kind's payload may hold.
package struct PayloadKey: Equatable, Sendable {
    /// The key as the producer writes it.
    package let name: String
    /// The type of its value.
    package let type: PayloadType

    /// A declared key.
    package init(name: String, type: PayloadType) {
        self.name = name
        self.type = type
    }
}
