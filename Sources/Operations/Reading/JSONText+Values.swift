import OutboxCore

/// Values of the core as JSON: null where there is none, instants as RFC 3339 in UTC.
extension JSONText {
    static func int(_ value: Int?) -> JSONText { value.map(JSONText.int) ?? .null }
    static func identifier(_ value: Identifier?) -> JSONText { .string(value?.description) }
    static func instant(_ value: Timestamp?) -> JSONText { .string(value.map(TimeText.precise)) }
}
