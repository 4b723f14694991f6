/// One target to be checked again before it is sent to.
package struct RecheckTarget: Equatable, Sendable {
    /// The notification.
    package let notification: Identifier
    /// The device.
    package let device: Int64
    /// The token that would be sent.
    package let tokenSequence: Int32

    /// A target to be checked.
    package init(notification: Identifier, device: Int64, tokenSequence: Int32) {
        self.notification = notification
        self.device = device
        self.tokenSequence = tokenSequence
    }
}
