import OutboxCore

extension APNSReason {
    /// Every answer that Apple documents for a push to a device (Handling notification responses from APNs), the second
    /// spelling of the environment fault that its servers use, and what Postbell does about each.
    ///
    /// A 400 clears a device token only in a lane that is proven to be set up rightly: a wrong environment or topic
    /// gives the same answers for healthy tokens.
    package static let table: [APNSReason] = [
        APNSReason(400, "BadCollapseId", .rejected, meaning: "the collapse id is too long", remedy: defect),
        APNSReason(
            400, "BadDeviceToken", .unregistered, proof: .needsProvenLane,
            meaning: "the token is malformed, or of the other environment",
            remedy: "check the environment that devices are registered with"),
        APNSReason(400, "BadExpirationDate", .rejected, meaning: "the expiration is no number", remedy: defect),
        APNSReason(400, "BadMessageId", .rejected, meaning: "apns-id is no UUID", remedy: defect),
        APNSReason(
            400, "BadPriority", .rejected, meaning: "the priority does not exist or does not fit the push type",
            remedy: defect),
        APNSReason(
            400, "BadTopic", .misconfigured, .topic, meaning: "the topic is invalid",
            remedy: "check the app's bundle id"),
        APNSReason(
            400, "DeviceTokenNotForTopic", .misconfigured, .target,
            meaning: "the token belongs to another app", remedy: "check how devices are registered"),
        APNSReason(400, "DuplicateHeaders", .rejected, meaning: "a header twice", remedy: defect),
        APNSReason(400, "IdleTimeout", .retry, advice: .reconnect, meaning: "the connection was idle too long"),
        APNSReason(
            400, "InvalidPushType", .rejected, meaning: "the kind's push type does not exist or does not fit",
            remedy: "check the kind"),
        APNSReason(400, "MissingDeviceToken", .rejected, meaning: "no token in the path", remedy: defect),
        APNSReason(
            400, "MissingTopic", .misconfigured, .topic, meaning: "no topic was sent",
            remedy: "check the app's bundle id"),
        APNSReason(400, "PayloadEmpty", .rejected, meaning: "no payload", remedy: defect),
        APNSReason(
            400, "TopicDisallowed", .misconfigured, .topic,
            meaning: "the key may not push to this topic", remedy: "check the key's scope"),
        APNSReason(
            403, "BadCertificate", .misconfigured, .lane, meaning: "the certificate is bad", remedy: "check the key"),
        APNSReason(
            403, "BadCertificateEnvironment", .misconfigured, .lane,
            meaning: "the certificate is for the other environment", remedy: "check the key"),
        APNSReason(
            403, "BadEnvironmentKeyIdInToken", .misconfigured, .lane, meaning: "the key is for the other environment",
            remedy: "use a key of this environment"),
        APNSReason(
            403, "BadEnvironmentKeyInToken", .misconfigured, .lane,
            meaning: "the same, as the servers spell it", remedy: "use a key of this environment"),
        APNSReason(
            403, "ExpiredProviderToken", .misconfigured, .lane, advice: .replaceToken,
            meaning: "the provider token is older than an hour: a new one once", remedy: "check the clock if it stays"),
        APNSReason(
            403, "Forbidden", .misconfigured, .lane, meaning: "the action is not allowed",
            remedy: "check key and team"),
        APNSReason(
            403, "InvalidProviderToken", .misconfigured, .lane,
            meaning: "signature, key id or team is wrong", remedy: "check key, key id and team"),
        APNSReason(
            403, "MissingProviderToken", .misconfigured, .lane,
            meaning: "no provider token was sent", remedy: defect),
        APNSReason(
            403, "UnrelatedKeyIdInToken", .retry, advice: .reconnect,
            meaning: "the connection is bound to another key"),
        APNSReason(404, "BadPath", .rejected, meaning: "wrong path", remedy: defect),
        APNSReason(405, "MethodNotAllowed", .rejected, meaning: "wrong method", remedy: defect),
        APNSReason(410, "ExpiredToken", .unregistered, proof: .proven, meaning: "the device token has expired"),
        APNSReason(
            410, "Unregistered", .unregistered, proof: .proven, meaning: "the app was removed or its token replaced"),
        APNSReason(
            413, "PayloadTooLarge", .rejected, meaning: "the payload is larger than the push type allows",
            remedy: "check the kind's texts"),
        APNSReason(
            429, "TooManyProviderTokenUpdates", .throttled, .lane, floor: .fixed(tokenUpdateFloor), advice: .keepToken,
            meaning: "provider tokens were changed within 20 minutes",
            remedy: "find what else makes tokens with this team's keys"),
        APNSReason(
            429, "TooManyRequests", .throttled, floor: .fixed(throttleFloor),
            meaning: "too many pushes to this device"),
        APNSReason(500, "InternalServerError", .retry, floor: .serverError, meaning: "a fault of the service"),
        APNSReason(503, "ServiceUnavailable", .retry, floor: .serverError, meaning: "the service is unavailable"),
        APNSReason(
            503, "Shutdown", .retry, floor: .serverError, advice: .reconnect, meaning: "the server is going away"),
    ]
}
