/// What an answer does to a device; applied after the settle, and only while the token that was sent is still stored.
package struct DeviceEffect: Equatable, Sendable {
    /// What happens to the device.
    package enum Change: Int16, Equatable, Sendable {
        /// A push was accepted: failures forgotten, success noted.
        case succeeded = 0
        /// The provider failed in a healthy lane.
        case failed = 1
        /// The token is dead and leaves the registry.
        case tokenInvalid = 2
    }

    /// The device.
    package let device: Int64
    /// The token that was sent.
    package let tokenSequence: Int32
    /// What happens.
    package let change: Change
    /// For a dead token: registered after this instant it lives on. The provider's timestamp, or the first byte's.
    package let asOf: Timestamp
    /// The notification whose answer this is, for the event.
    package let notification: Identifier

    /// An effect of one answer.
    package init(device: Int64, tokenSequence: Int32, change: Change, asOf: Timestamp, notification: Identifier) {
        self.device = device
        self.tokenSequence = tokenSequence
        self.change = change
        self.asOf = asOf
        self.notification = notification
    }
}
