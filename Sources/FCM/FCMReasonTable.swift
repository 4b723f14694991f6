import OutboxCore

extension FCMReason {
    /// Every answer that Google documents for a message to a token (Firebase, FCM error codes; the answers of its front
    /// as client libraries have met them), and what Postbell does about each. The first row that fits counts.
    ///
    /// One code, INVALID_ARGUMENT, stands for a broken token and for a broken message alike: it clears a token only
    /// where the answer names the token, and only in a lane that is proven to be set up rightly.
    package static let table: [FCMReason] = [
        FCMReason(
            400, "INVALID_ARGUMENT", .rejected, evidence: .payload,
            meaning: "a field of the message other than its token is wrong", remedy: "check the kind's payload"),
        FCMReason(
            400, "INVALID_ARGUMENT", .unregistered, evidence: .token, proof: .needsProvenLane,
            meaning: "the token is not one of FCM's"),
        FCMReason(
            400, "INVALID_ARGUMENT", .rejected, meaning: "message or token is wrong, and the answer does not say which",
            remedy: "check the kind's payload"),
        FCMReason(
            401, "THIRD_PARTY_AUTH_ERROR", .misconfigured, origin: .detail,
            meaning: "Firebase cannot sign in to Apple or to a web push service for this target",
            remedy: "check the APNs key or web push key stored in Firebase"),
        FCMReason(
            401, "APNS_AUTH_ERROR", .misconfigured, origin: .detail, meaning: "the same by its old name",
            remedy: "check the APNs key stored in Firebase"),
        FCMReason(
            401, "UNAUTHENTICATED", .misconfigured, .lane, origin: .status, advice: .replaceToken,
            meaning: "the access token is missing, expired or revoked: a new one once",
            remedy: "check the service account, then the clock"),
        FCMReason(
            403, "SENDER_ID_MISMATCH", .misconfigured, origin: .detail,
            meaning: "the token belongs to another Firebase project", remedy: "check how devices are registered"),
        FCMReason(
            403, "PERMISSION_DENIED", .misconfigured, .lane, origin: .status,
            meaning: "the service account lacks the right, or the API is off in the project",
            remedy: "enable the Firebase Cloud Messaging API and grant the account its role"),
        FCMReason(
            404, "UNREGISTERED", .unregistered, origin: .detail, proof: .proven,
            meaning: "the app was removed, its token replaced, or unused for 270 days"),
        FCMReason(
            404, "NOT_FOUND", .misconfigured, .lane, origin: .status,
            meaning: "no such project: this says nothing of the token", remedy: "check the project id"),
        FCMReason(
            429, "QUOTA_EXCEEDED", .throttled, evidence: .device, floor: .throttle,
            meaning: "too many messages to this device"),
        FCMReason(
            429, "QUOTA_EXCEEDED", .throttled, .lane, floor: .throttle, meaning: "too many messages of this project",
            remedy: "ask Google for a larger quota if it stays"),
        FCMReason(
            429, "RESOURCE_EXHAUSTED", .throttled, evidence: .device, floor: .throttle,
            meaning: "too many messages to this device"),
        FCMReason(
            429, "RESOURCE_EXHAUSTED", .throttled, .lane, floor: .throttle,
            meaning: "too many requests of this project, or an overload",
            remedy: "ask Google for a larger quota if it stays"),
        FCMReason(500, "INTERNAL", .retry, floor: .fixed(serverErrorFloor), meaning: "a fault of the service"),
        FCMReason(503, "UNAVAILABLE", .retry, floor: .fixed(serverErrorFloor), meaning: "the service is overloaded"),
        FCMReason(
            0, "UNSPECIFIED_ERROR", .retry, origin: .detail, floor: .fixed(serverErrorFloor),
            meaning: "FCM says nothing more"),
    ]
}
