/// The rules that FCM holds bodies to. Nil is "nothing against it".
struct FCMRequestRules {
    /// Whether everything is checked, or only what no answer can be given without.
    let isStrict: Bool

    /// Bytes of keys and values of a message to one target (docs of FCM: 4,096, for topics 2,048).
    static let payloadLimit = 4096
    /// The longest life of a message, in seconds: 28 days.
    static let longestLife: Int64 = 2_419_200
    /// The longest registration token that is looked at; real ones have some 160 characters.
    private static let tokenLimit = 4096

    /// What is wrong with a request whose access token was accepted.
    func fault(of request: FCMRequest, in stream: ServerStream) -> FCMFault? {
        if isStrict, let fault = Self.faultOfHeaders(request) { return fault }
        if stream.bodySize > stream.body.count {
            return .invalidArgument("Request payload size exceeds the limit: \(ServerStream.bodyLimit) bytes.")
        }
        guard let body = request.body, body.members != nil else {
            return FCMFault(
                httpStatus: 400, status: "INVALID_ARGUMENT",
                message: "Invalid JSON payload received. Unexpected token.")
        }
        if isStrict, let fault = FCMSchema.fault(of: body) { return fault }
        guard let message = body["message"], message.members != nil else {
            return .badRequest("message", "Message is missing.")
        }
        if let fault = Self.faultOfTarget(message) { return fault }
        return isStrict ? Self.faultOfContent(message) : Self.faultOfData(message["data"], at: "message.data")
    }

    private static func faultOfHeaders(_ request: FCMRequest) -> FCMFault? {
        if request.hasDuplicate { return .invalidArgument("A header is there twice.") }
        guard let type = request.contentType, type.hasPrefix("application/json") else {
            return .invalidArgument("Content-Type is not application/json.")
        }
        return nil
    }

    private static func faultOfTarget(_ message: JSONValue) -> FCMFault? {
        let targets = ["token", "fid", "topic", "condition"].filter { message[$0] != nil }
        guard let target = targets.first else {
            return .invalidArgument("Recipient of the message is not set.")
        }
        guard targets.count == 1 else {
            return .badRequest(
                "message",
                "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set '\(target)'")
        }
        guard let text = message[target]?.text else {
            return .badRequest("message.\(target)", "Invalid value at 'message.\(target)' (TYPE_STRING)")
        }
        guard target == "token" || target == "fid" else { return nil }
        let isPrintable = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
        return !text.isEmpty && text.utf8.count <= tokenLimit && isPrintable ? nil : .badToken
    }

    private static func faultOfContent(_ message: JSONValue) -> FCMFault? {
        let android = message["android"]
        let places: [(JSONValue?, String)] = [
            (message["data"], "message.data"), (android?["data"], "message.android.data"),
        ]
        for (data, place) in places {
            if let fault = faultOfData(data, at: place) { return fault }
            for member in data?.members ?? [] where isReserved(member.name) {
                return .invalidArgument("Invalid data payload key: \(member.name)")
            }
        }
        if let text = android?["ttl"]?.text, let life = FCMSchema.seconds(of: text), life > longestLife {
            return .invalidArgument("Invalid time to live: it exceeds 28 days.")
        }
        let limit = message["topic"] == nil && message["condition"] == nil ? payloadLimit : payloadLimit / 2
        let notification = size(of: message["notification"]) + size(of: android?["notification"])
        let data = size(of: android?["data"] ?? message["data"])
        return notification + data > limit ? .invalidArgument("Android message is too big") : nil
    }

    private static func faultOfData(_ data: JSONValue?, at place: String) -> FCMFault? {
        guard let data else { return nil }
        guard let members = data.members else {
            return .badRequest(place, "Invalid value at '\(place)' (type.googleapis.com/google.protobuf.Struct)")
        }
        for (index, member) in members.enumerated() where member.value.text == nil {
            let field = "\(place)[\(index)].value"
            return .badRequest(field, "Invalid value at '\(field)' (TYPE_STRING)")
        }
        return nil
    }

    /// Reserved words (the reference of Message.data, and its guide for words without a dot).
    private static func isReserved(_ name: String) -> Bool {
        name == "from" || name == "message_type" || name.hasPrefix("google") || name.hasPrefix("gcm")
    }

    private static func size(of object: JSONValue?) -> Int {
        (object?.members ?? []).reduce(0) { $0 + $1.name.utf8.count + ($1.value.text?.utf8.count ?? 0) }
    }
}
