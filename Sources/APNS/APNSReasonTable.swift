import OutboxCore

extension APNSReason {
    /// Every answer that Apple documents for a push to a device (Handling notification responses from APNs), the second
    /// spelling of the environment fault that its servers use, and what Postbell does about each.
    ///
    /// A 400 clears a device token only in a lane that is proven to be set up rightly: a wrong environment or topic
    /// gives the same answers for healthy tokens.
    package static let table: [APNSReason] = [
        APNSReason(400, "BadCollapseId", .rejected, meaning: "collapse id too long: a defect of ours"),
        APNSReason(
            400, "BadDeviceToken", .unregistered, proof: .needsProvenLane,
            meaning: "the token is malformed, or of the other environment"),
        APNSReason(400, "BadExpirationDate", .rejected, meaning: "expiration is no number: a defect of ours"),
        APNSReason(400, "BadMessageId", .rejected, meaning: "apns-id is no UUID: a defect of ours"),
        APNSReason(400, "BadPriority", .rejected, meaning: "priority does not exist or does not fit the push type"),
        APNSReason(400, "BadTopic", .misconfigured, .topic, meaning: "the topic is invalid: check the app's bundle id"),
        APNSReason(
            400, "DeviceTokenNotForTopic", .misconfigured, .target,
            meaning: "the token belongs to another app: check how devices are registered"),
        APNSReason(400, "DuplicateHeaders", .rejected, meaning: "a header twice: a defect of ours"),
        APNSReason(400, "IdleTimeout", .retry, advice: .reconnect, meaning: "the connection was idle too long"),
        APNSReason(400, "InvalidPushType", .rejected, meaning: "the kind's push type does not exist or does not fit"),
        APNSReason(400, "MissingDeviceToken", .rejected, meaning: "no token in the path: a defect of ours"),
        APNSReason(
            400, "MissingTopic", .misconfigured, .topic, meaning: "no topic was sent: check the app's bundle id"),
        APNSReason(400, "PayloadEmpty", .rejected, meaning: "no payload: a defect of ours"),
        APNSReason(
            400, "TopicDisallowed", .misconfigured, .topic,
            meaning: "the key may not push to this topic: check the key's scope"),
        APNSReason(403, "BadCertificate", .misconfigured, .lane, meaning: "the certificate is bad"),
        APNSReason(
            403, "BadCertificateEnvironment", .misconfigured, .lane,
            meaning: "the certificate is for the other environment"),
        APNSReason(
            403, "BadEnvironmentKeyIdInToken", .misconfigured, .lane, meaning: "the key is for the other environment"),
        APNSReason(
            403, "BadEnvironmentKeyInToken", .misconfigured, .lane,
            meaning: "the key is for the other environment (as the servers spell it)"),
        APNSReason(
            403, "ExpiredProviderToken", .misconfigured, .lane, advice: .replaceToken,
            meaning: "the provider token is older than an hour: a new one once, then check the clock"),
        APNSReason(403, "Forbidden", .misconfigured, .lane, meaning: "the action is not allowed: check key and team"),
        APNSReason(
            403, "InvalidProviderToken", .misconfigured, .lane,
            meaning: "signature, key id or team is wrong: check the key"),
        APNSReason(
            403, "MissingProviderToken", .misconfigured, .lane,
            meaning: "no provider token was sent: a defect of ours"),
        APNSReason(
            403, "UnrelatedKeyIdInToken", .retry, advice: .reconnect,
            meaning: "the connection is bound to another key: a new connection"),
        APNSReason(404, "BadPath", .rejected, meaning: "wrong path: a defect of ours"),
        APNSReason(405, "MethodNotAllowed", .rejected, meaning: "wrong method: a defect of ours"),
        APNSReason(410, "ExpiredToken", .unregistered, proof: .proven, meaning: "the device token has expired"),
        APNSReason(
            410, "Unregistered", .unregistered, proof: .proven, meaning: "the app was removed or its token replaced"),
        APNSReason(413, "PayloadTooLarge", .rejected, meaning: "the payload is larger than the push type allows"),
        APNSReason(
            429, "TooManyProviderTokenUpdates", .throttled, .lane, floor: .fixed(tokenUpdateFloor), advice: .keepToken,
            meaning: "provider tokens were changed within 20 minutes: something else mints with this team's keys"),
        APNSReason(
            429, "TooManyRequests", .throttled, floor: .fixed(throttleFloor),
            meaning: "too many pushes to this device"),
        APNSReason(500, "InternalServerError", .retry, floor: .serverError, meaning: "a fault of the service"),
        APNSReason(503, "ServiceUnavailable", .retry, floor: .serverError, meaning: "the service is unavailable"),
        APNSReason(
            503, "Shutdown", .retry, floor: .serverError, advice: .reconnect, meaning: "the server is going away"),
    ]
}
