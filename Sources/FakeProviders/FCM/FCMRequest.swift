/// The parts of a request that FCM looks at.
struct FCMRequest {
    /// Where method and path stand in the stream's header bytes.
    let method: Range<Int>?
    let path: Range<Int>?
    /// Whether the method is POST.
    let isPost: Bool
    /// The project of `/v1/projects/<project>/messages:send`; nil for another path.
    let project: String?
    /// The access token of `authorization: Bearer <token>`.
    let bearer: String?
    /// The header `content-type`.
    let contentType: String?
    /// Whether a header was there twice.
    let hasDuplicate: Bool
    /// The body as JSON; nil when it is none.
    let body: JSONValue?

    /// Reads a whole request.
    init(_ stream: ServerStream) {
        var method: Range<Int>?
        var path: Range<Int>?
        var bearer: String?
        var contentType: String?
        var names: Set<String> = []
        var hasDuplicate = false
        for header in stream.headers {
            let name = stream.text(header.name)
            if !names.insert(name).inserted { hasDuplicate = true }
            switch name {
            case ":method": method = header.value
            case ":path": path = header.value
            case "authorization": bearer = Self.bearer(stream.text(header.value))
            case "content-type": contentType = stream.text(header.value)
            default: break
            }
        }
        self.method = method
        self.path = path
        self.bearer = bearer
        self.contentType = contentType
        self.hasDuplicate = hasDuplicate
        isPost = method.map { stream.holds("POST", at: $0) } ?? false
        project = path.flatMap { Self.project(of: stream.text($0)) }
        body = JSONValue(stream.body)
    }

    /// The registration token, or the newer installation id.
    var target: String? {
        guard let message = body?["message"] else { return nil }
        return message["token"]?.text ?? message["fid"]?.text
    }

    /// Whether the request is to be checked without sending anything.
    var isValidation: Bool {
        body?["validate_only"] == .bool(true) || body?["validateOnly"] == .bool(true)
    }

    private static func bearer(_ value: String) -> String? {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return String(parts[1])
    }

    private static func project(of path: String) -> String? {
        let path = path.prefix { $0 != "?" }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 5, parts[0].isEmpty, parts[1] == "v1", parts[2] == "projects", !parts[3].isEmpty,
            parts[4] == "messages:send"
        else { return nil }
        return String(parts[3])
    }
}
