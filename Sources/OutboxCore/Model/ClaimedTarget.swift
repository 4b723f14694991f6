/// One device that a claimed row is to be sent to.
package struct ClaimedTarget: Equatable, Sendable {
    /// The device's number.
    package let device: Int64
    /// The push token, in the batch's text buffer.
    package let token: TextRange
    /// Which token of the device it is: device effects apply only while it is still the stored one.
    package let tokenSequence: Int32
    /// Attempts already spent on this target.
    package let spentAttempts: Int16
    /// Whether an accepted push should be noted on the device (it has failures, or none was noted for a day).
    package let notesSuccess: Bool

    /// Whether sending to it is a retry.
    package var isRetry: Bool { spentAttempts > 0 }

    /// A target as the claim answered it.
    package init(
        device: Int64, token: TextRange, tokenSequence: Int32, spentAttempts: Int16, notesSuccess: Bool
    ) {
        self.device = device
        self.token = token
        self.tokenSequence = tokenSequence
        self.spentAttempts = spentAttempts
        self.notesSuccess = notesSuccess
    }
}
