/// The name of a header that changes from request to request, lower case as HTTP/2 demands (RFC 9113 8.2.1).
package struct HTTPFieldName: Equatable, Sendable {
    /// The name; a literal, so that it needs no memory of its own.
    package let text: StaticString

    /// A lower-case name.
    package init(_ text: StaticString) {
        self.text = text
    }

    package static func == (left: HTTPFieldName, right: HTTPFieldName) -> Bool {
        left.text.utf8Start == right.text.utf8Start && left.text.utf8CodeUnitCount == right.text.utf8CodeUnitCount
    }
}

/// A header that many requests share, with its value.
package struct HTTPHeader: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    /// Lower-case name.
    package let name: String
    /// The value, already checked for control characters by whoever made it.
    package let value: String
    /// Whether the value is a secret: never indexed by HPACK (RFC 7541 7.1.3), never printed.
    package let isSensitive: Bool

    /// A header for every request that uses its list.
    package init(_ name: String, _ value: String, isSensitive: Bool = false) {
        self.name = name
        self.value = value
        self.isSensitive = isSensitive
    }

    package var description: String { "\(name): \(isSensitive ? "not shown" : value)" }

    /// The description alone, so that a dump shows no more than it does.
    package var customMirror: Mirror { Mirror(self, unlabeledChildren: [description]) }
}

/// One request of a batch: what it shares (by index) and what is its own (by slices of the batch's buffer).
package struct HTTPRequest: Sendable {
    /// The caller's own reference; comes back with the result.
    package let tag: UInt64
    /// Index into the batch's `sharedHeaders`.
    package let shared: Int32
    /// The value of `:path`.
    package let path: ByteSlice
    /// Headers of this request alone; the first `fieldCount` count. Sent without entering the peer's HPACK table.
    package let fields: InlineArray<4, HTTPRequestField>
    /// How many of `fields` are used.
    package let fieldCount: Int
    /// The whole body. Several requests may share one slice.
    package let body: ByteSlice
    /// When the right to send it ends: what waits for a stream until then is given back. Nil for never.
    package let sendBy: ContinuousClock.Instant?
}

/// A header of one request.
package struct HTTPRequestField: Sendable {
    /// The header's name.
    package let name: HTTPFieldName
    /// The header's value.
    package let value: ByteSlice

    /// A header with its value in the batch's buffer.
    package init(_ name: HTTPFieldName, _ value: ByteSlice) {
        self.name = name
        self.value = value
    }
}

/// Requests that are handed to a client together: one buffer for all their bytes.
///
/// Method is always POST, scheme https, authority the client's; all push providers want just that.
package struct HTTPRequestBatch: Sendable {
    /// Paths, header values and bodies, one after the other.
    package private(set) var bytes: [UInt8] = []
    /// Lists of headers that requests share; few (one per topic, push type and priority).
    package private(set) var sharedHeaders: [[HTTPHeader]] = []
    /// The requests, in the order in which they are to be sent.
    package private(set) var requests: [HTTPRequest] = []
    /// When the right to send the requests added from now on ends; nil for never.
    package var sendBy: ContinuousClock.Instant?

    /// An empty batch.
    package init() {}

    /// Makes room once for about `requests` requests of `bytes` bytes in all.
    package mutating func reserve(requests count: Int, bytes size: Int) {
        requests.reserveCapacity(requests.count + count)
        bytes.reserveCapacity(bytes.count + size)
    }

    /// Adds a list of shared headers and answers the index that requests name it by.
    package mutating func addSharedHeaders(_ headers: [HTTPHeader]) -> Int32 {
        sharedHeaders.append(headers)
        return Int32(sharedHeaders.count - 1)
    }

    /// Lets `write` append bytes to the buffer and answers what it appended.
    package mutating func append(_ write: (inout [UInt8]) -> Void) -> ByteSlice {
        let start = bytes.count
        write(&bytes)
        return ByteSlice(start: start, count: bytes.count - start)
    }

    /// Adds a request. At most four `fields`.
    package mutating func add(
        tag: UInt64, shared: Int32, path: ByteSlice, fields: [HTTPRequestField], body: ByteSlice
    ) {
        precondition(fields.count <= 4, "a request has at most four headers of its own")
        let unused = HTTPRequestField(HTTPFieldName(""), .empty)
        var inline = InlineArray<4, HTTPRequestField>(repeating: unused)
        for (index, field) in fields.enumerated() { inline[index] = field }
        add(tag: tag, shared: shared, path: path, fields: inline, count: fields.count, body: body)
    }

    /// Adds a request whose headers stand in line already: the form for the hot path.
    package mutating func add(
        tag: UInt64, shared: Int32, path: ByteSlice, fields: InlineArray<4, HTTPRequestField>, count: Int,
        body: ByteSlice
    ) {
        requests.append(
            HTTPRequest(
                tag: tag, shared: shared, path: path, fields: fields, fieldCount: count, body: body, sendBy: sendBy))
    }
}
