/// An error answer of FCM: what stands in Google's JSON (`google.rpc.Status`) and in the headers beside it.
///
/// Shapes and words are those that were seen at the real service or stand in its reference; where neither is known,
/// the case says so.
package struct FCMFault: Equatable, Sendable {
    /// The HTTP status, which is also `error.code`.
    package let httpStatus: Int
    /// `error.status`, a code of google.rpc.Code.
    package let status: String
    /// `error.message`.
    package let message: String
    /// `errorCode` of the detail `FcmError`; nil for answers without that detail.
    package let errorCode: String?
    /// Further details, each a JSON object.
    let details: [String]
    /// The header `retry-after`.
    package var retryAfter: RetryAfter?

    /// An answer of any shape.
    package init(
        httpStatus: Int, status: String, message: String, errorCode: String? = nil, retryAfter: RetryAfter? = nil
    ) {
        self.init(httpStatus, status, message, errorCode: errorCode, details: [], retryAfter: retryAfter)
    }

    private init(
        _ httpStatus: Int, _ status: String, _ message: String, errorCode: String? = nil, details: [String] = [],
        retryAfter: RetryAfter? = nil
    ) {
        self.httpStatus = httpStatus
        self.status = status
        self.message = message
        self.errorCode = errorCode
        self.details = details
        self.retryAfter = retryAfter
    }

    // MARK: About the target

    /// The app instance is gone: the only proof that a token is dead.
    package static let unregistered = FCMFault(
        404, "NOT_FOUND", "Requested entity was not found.", errorCode: "UNREGISTERED")
    /// The token belongs to another sender.
    package static let senderIDMismatch = FCMFault(
        403, "PERMISSION_DENIED", "SenderId mismatch", errorCode: "SENDER_ID_MISMATCH")
    /// The token is malformed.
    package static let badToken = FCMFault(
        400, "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token",
        errorCode: "INVALID_ARGUMENT")
    /// The token is malformed, and the answer names its field.
    package static let badTokenField = FCMFault(
        400, "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token",
        errorCode: "INVALID_ARGUMENT", details: [badRequest([("message.token", "Invalid registration token")])])
    /// The key for APNs or for web push that is stored in Firebase is bad.
    package static let thirdPartyAuthError = FCMFault(
        401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service", errorCode: "THIRD_PARTY_AUTH_ERROR",
        details: [
            """
            {"@type": "type.googleapis.com/google.firebase.fcm.v1.ApnsError", "statusCode": 403, \
            "reason": "InvalidProviderToken"}
            """
        ])
    /// The same, in the words of the front end, which name our own credential.
    package static let thirdPartyAuthErrorOfFrontEnd = FCMFault(
        401, "UNAUTHENTICATED", missingCredential, errorCode: "THIRD_PARTY_AUTH_ERROR")
    /// Too many messages for this device. The violation's subject and words are imagined: Google documents the detail
    /// `QuotaFailure`, and nobody has published one.
    package static let deviceQuota = FCMFault(
        429, "RESOURCE_EXHAUSTED", "Device message rate exceeded.", errorCode: "QUOTA_EXCEEDED",
        details: [quotaFailure("device", "Device message rate exceeded for this registration token.")])

    // MARK: About the payload

    /// A field of the body is not as it should be; without `FcmError`, as seen.
    package static func badRequest(_ field: String, _ message: String) -> FCMFault {
        FCMFault(400, "INVALID_ARGUMENT", message, details: [badRequest([(field, message)])])
    }

    /// A rule about the message as a whole is broken; with `FcmError`, as seen.
    package static func invalidArgument(_ message: String) -> FCMFault {
        FCMFault(400, "INVALID_ARGUMENT", message, errorCode: "INVALID_ARGUMENT")
    }

    // MARK: About the project, its credential, or the service

    /// No access token.
    package static let noCredential = FCMFault(401, "UNAUTHENTICATED", missingCredential)
    /// An access token that is unknown, revoked or expired.
    package static let badCredential = FCMFault(
        401, "UNAUTHENTICATED",
        """
        Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid \
        authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.
        """,
        details: [errorInfo("ACCESS_TOKEN_EXPIRED", domain: "googleapis.com")])
    /// The account may not send for the project.
    package static func permissionDenied(project: String) -> FCMFault {
        FCMFault(
            403, "PERMISSION_DENIED",
            """
            Permission 'cloudmessaging.messages.create' denied on resource \
            '//cloudresourcemanager.googleapis.com/projects/\(project)' (or it may not exist).
            """,
            details: [errorInfo("IAM_PERMISSION_DENIED", domain: "cloudresourcemanager.googleapis.com")])
    }
    /// The API is not enabled in the project.
    package static func serviceDisabled(project: String) -> FCMFault {
        FCMFault(
            403, "PERMISSION_DENIED",
            """
            Firebase Cloud Messaging API has not been used in project \(project) before or it is disabled. Enable it, \
            then retry.
            """,
            details: [errorInfo("SERVICE_DISABLED", domain: "googleapis.com")])
    }
    /// A 404 that says nothing about a token: another project, another address.
    package static let notFound = FCMFault(404, "NOT_FOUND", "Requested entity was not found.")
    /// The project's messages per minute are used up.
    package static func projectQuota(retryAfter: RetryAfter?) -> FCMFault {
        FCMFault(
            429, "RESOURCE_EXHAUSTED",
            """
            Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute' of service \
            'fcm.googleapis.com' for consumer 'project_number:100000000000'.
            """,
            details: [errorInfo("RATE_LIMIT_EXCEEDED", domain: "googleapis.com")], retryAfter: retryAfter)
    }
    /// The same as FCM itself answers it.
    package static func projectQuotaOfFCM(retryAfter: RetryAfter?) -> FCMFault {
        FCMFault(
            429, "RESOURCE_EXHAUSTED", "Message rate exceeded for the project.", errorCode: "QUOTA_EXCEEDED",
            details: [quotaFailure("project", "Message rate exceeded for the project.")], retryAfter: retryAfter)
    }
    /// An error without a cause.
    package static let unspecified = FCMFault(
        500, "UNKNOWN", "Unknown Error.", errorCode: "UNSPECIFIED_ERROR")
    /// An error of the service.
    package static let internalError = FCMFault(
        500, "INTERNAL", "Internal error encountered.", errorCode: "INTERNAL")
    /// The service is overloaded.
    package static func unavailable(retryAfter: RetryAfter?) -> FCMFault {
        FCMFault(
            503, "UNAVAILABLE", "The service is currently unavailable.", errorCode: "UNAVAILABLE",
            retryAfter: retryAfter)
    }

    /// The body, laid out as Google lays it out.
    var body: String {
        var details = self.details
        if let errorCode {
            details.insert(
                "{\"@type\": \"type.googleapis.com/google.firebase.fcm.v1.FcmError\", \"errorCode\": \"\(errorCode)\"}",
                at: 0)
        }
        let listed = details.map { "      " + $0 }.joined(separator: ",\n")
        let tail = details.isEmpty ? "" : ",\n    \"details\": [\n\(listed)\n    ]"
        return """
            {
              "error": {
                "code": \(httpStatus),
                "message": \(JSONText.quoted(message)),
                "status": "\(status)"\(tail)
              }
            }

            """
    }

    // MARK: Details

    private static let missingCredential = """
        Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other \
        valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.
        """

    private static func badRequest(_ violations: [(field: String, description: String)]) -> String {
        let listed = violations.map { violation in
            let description = JSONText.quoted(violation.description)
            return "{\"field\": \(JSONText.quoted(violation.field)), \"description\": \(description)}"
        }
        return """
            {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": \
            [\(listed.joined(separator: ", "))]}
            """
    }

    private static func quotaFailure(_ subject: String, _ description: String) -> String {
        """
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": \
        [{"subject": "\(subject)", "description": "\(description)"}]}
        """
    }

    private static func errorInfo(_ reason: String, domain: String) -> String {
        """
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "\(reason)", "domain": "\(domain)", \
        "metadata": {"service": "fcm.googleapis.com"}}
        """
    }
}
