/// Why a lane or topic is paused, and for how long.
package struct LanePause: Equatable, Sendable {
    /// The answer's status; 0 where there was none.
    package let status: Int16
    /// The answer's reason.
    package let reason: String
    /// Until the next probe.
    package let duration: Duration
    /// Whether the credential may be the cause, so that the probe reads it again; not where the provider only wants
    /// less.
    package let doubtsCredential: Bool

    /// A pause after an answer.
    package init(status: Int16, reason: String, duration: Duration, doubtsCredential: Bool = true) {
        self.doubtsCredential = doubtsCredential
        self.status = status
        self.reason = reason
        self.duration = duration
    }
}
