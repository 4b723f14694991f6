/// The parts of a request that APNs looks at, found in one pass over its headers: the stand-in is the peer of benches.
struct APNSRequestFields {
    /// Where the values stand in the stream's header bytes; nil for a header that is absent.
    private(set) var method: Range<Int>?
    private(set) var path: Range<Int>?
    private(set) var authorization: Range<Int>?
    private(set) var topic: Range<Int>?
    private(set) var pushType: Range<Int>?
    private(set) var identifier: Range<Int>?
    private(set) var priority: Range<Int>?
    private(set) var expiration: Range<Int>?
    private(set) var collapse: Range<Int>?
    /// Whether one of them is there twice; the last one counts then.
    private(set) var hasDuplicate = false

    private static let devicePath: StaticString = "/3/device/"

    /// The fields of a whole request.
    init(_ stream: ServerStream) {
        for header in stream.headers { take(header, of: stream) }
    }

    /// The device token of the path; nil when the path is another.
    func deviceToken(in stream: ServerStream) -> Range<Int>? {
        guard let path, path.count >= Self.devicePath.utf8CodeUnitCount else { return nil }
        let middle = path.lowerBound + Self.devicePath.utf8CodeUnitCount
        return stream.holds(Self.devicePath, at: path.lowerBound..<middle) ? middle..<path.upperBound : nil
    }

    /// Names are told apart by their length first.
    private mutating func take(_ header: ServerStream.Header, of stream: ServerStream) {
        func isNamed(_ name: StaticString) -> Bool { stream.holds(name, at: header.name) }
        let isNew: Bool
        switch header.name.count {
        case 5 where isNamed(":path"): isNew = Self.set(&path, header)
        case 7 where isNamed(":method"): isNew = Self.set(&method, header)
        case 7 where isNamed("apns-id"): isNew = Self.set(&identifier, header)
        case 10 where isNamed("apns-topic"): isNew = Self.set(&topic, header)
        case 13 where isNamed("authorization"): isNew = Self.set(&authorization, header)
        case 13 where isNamed("apns-priority"): isNew = Self.set(&priority, header)
        case 14 where isNamed("apns-push-type"): isNew = Self.set(&pushType, header)
        case 15 where isNamed("apns-expiration"): isNew = Self.set(&expiration, header)
        case 16 where isNamed("apns-collapse-id"): isNew = Self.set(&collapse, header)
        default: return
        }
        if !isNew { hasDuplicate = true }
    }

    /// False when the field was set before.
    private static func set(_ field: inout Range<Int>?, _ header: ServerStream.Header) -> Bool {
        defer { field = header.value }
        return field == nil
    }
}
