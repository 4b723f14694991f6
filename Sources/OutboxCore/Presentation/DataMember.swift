/// A value that a notification has by itself, whatever its payload.
package enum OwnValue: String, Equatable, Sendable, CaseIterable {
    /// The notification's id.
    case id
    /// The row's thread.
    case thread
    /// The tenant's instance id.
    case instance
    /// The version of the mapping.
    case mapping
    /// The row's badge.
    case badge
    /// 1 for a silent row, else 0.
    case silent
    /// What is shown, or its key.
    case title, subtitle, body
}

/// Where the value of a dictionary's member comes from.
package enum DataValue: Equatable, Sendable {
    /// The catalog, as JSON.
    case constant([UInt8])
    /// The payload key of this name.
    case payload(String)
    /// The notification itself.
    case own(OwnValue)
}

/// A member of the dictionary that an app gets beside what is shown.
package struct DataMember: Equatable, Sendable {
    /// Its name; of letters, digits, `_`, `.` and `-`, so that JSON takes it as it is.
    package let name: [UInt8]
    /// Its value.
    package let value: DataValue

    /// A member as the catalog declares it.
    package init(_ name: String, _ value: DataValue) {
        self.name = Array(name.utf8)
        self.value = value
    }

    /// Fewest bytes of it: name and value of a constant.
    package var fixedBytes: Int {
        if case .constant(let json) = value { name.count + json.count } else { 0 }
    }
}
