/// An answer that every request gets whose headers are right, as long as it is set: an outage, a wrong environment.
package struct FakeAPNSVerdict: Equatable, Sendable {
    /// The status; 0 for no answer at all.
    package let status: Int
    /// The reason in the body.
    package let reason: String

    /// An answer with this status and reason.
    package init(status: Int, reason: String) {
        self.status = status
        self.reason = reason
    }

    /// The service is down.
    package static let unavailable = FakeAPNSVerdict(status: 503, reason: "ServiceUnavailable")
    /// Too many pushes to a device.
    package static let tooMany = FakeAPNSVerdict(status: 429, reason: "TooManyRequests")
    /// The token is malformed, or of the other environment.
    package static let badDeviceToken = FakeAPNSVerdict(status: 400, reason: "BadDeviceToken")
    /// The token belongs to another app.
    package static let otherTopic = FakeAPNSVerdict(status: 400, reason: "DeviceTokenNotForTopic")
    /// The key is for the other environment.
    package static let otherEnvironment = FakeAPNSVerdict(status: 403, reason: "BadEnvironmentKeyInToken")
    /// Signature, key id or team is wrong.
    package static let invalidToken = FakeAPNSVerdict(status: 403, reason: "InvalidProviderToken")
    /// The request is taken and never answered.
    package static let silence = FakeAPNSVerdict(status: 0, reason: "silence")

    var answer: APNSAnswer { status == 0 ? .unanswered(.silence) : .rejected(status: status, reason: reason) }
}
