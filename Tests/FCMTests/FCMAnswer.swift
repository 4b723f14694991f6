import FCM
import OutboxCore
import Support

/// Bodies of answers as Google writes them.
enum FCMAnswer {
    static let fcmError = "type.googleapis.com/google.firebase.fcm.v1.FcmError"

    /// An error with these details, each given as JSON.
    static func error(_ status: String, message: String = "m", _ details: String...) -> String {
        let list = details.isEmpty ? "" : ",\"details\":[\(details.joined(separator: ","))]"
        return "{\"error\":{\"code\":400,\"message\":\"\(message)\",\"status\":\"\(status)\"\(list)}}"
    }

    static func detail(_ code: String) -> String {
        "{\"@type\":\"\(fcmError)\",\"errorCode\":\"\(code)\"}"
    }

    static func badRequest(_ fields: String...) -> String {
        let violations = fields.map { "{\"field\":\"\($0)\",\"description\":\"Invalid value\"}" }
        return "{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":"
            + "[\(violations.joined(separator: ","))]}"
    }

    static func quota(subject: String, _ description: String) -> String {
        "{\"@type\":\"type.googleapis.com/google.rpc.QuotaFailure\",\"violations\":"
            + "[{\"subject\":\"\(subject)\",\"description\":\"\(description)\"}]}"
    }

    static let rateLimit =
        "{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"RATE_LIMIT_EXCEEDED\","
        + "\"domain\":\"googleapis.com\",\"metadata\":{\"quota_unit\":\"1/min/{project}\"}}"

    static let badToken = "The registration token is not a valid FCM registration token"
}

extension MadeResponse {
    /// The wall clock of these tests: Fri, 12 Dec 2025 10:00:00 GMT.
    static let now: Int64 = 1_765_533_600

    func decoded(throttleDelay: Duration = .seconds(60)) -> Outcome {
        FCMResponseDecoder(throttleDelay: throttleDelay).decode(response, text: bytes, now: Self.now)
    }
}
