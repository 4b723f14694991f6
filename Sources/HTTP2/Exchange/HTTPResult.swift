/// An answer: the status always, headers and body as far as they were asked for and fit.
package struct HTTPResponse: Sendable {
    /// 100–999; a final status, never an interim one.
    package let status: Int
    /// Values of the captured headers, in the order of the client's `capturedHeaders`; empty where absent.
    package let captured: InlineArray<4, ByteSlice>
    /// The body, cut at the client's bound.
    package let body: ByteSlice
    /// Whether bytes of the body were discarded.
    package let bodyWasCut: Bool
    /// Whether the connection had been idle (no request for a minute or more) before this request was sent on it.
    package let afterIdle: Bool

    /// An answer as it came.
    package init(
        status: Int, captured: InlineArray<4, ByteSlice>, body: ByteSlice, bodyWasCut: Bool, afterIdle: Bool
    ) {
        self.status = status
        self.captured = captured
        self.body = body
        self.bodyWasCut = bodyWasCut
        self.afterIdle = afterIdle
    }
}

/// Why no answer came. The two kinds are never mixed: only what was *not sent* may be repeated without a duplicate.
package enum HTTPFault: Error, Equatable, Sendable {
    /// No byte of the request can have been processed by the peer.
    case notSent(HTTPFaultReason)
    /// The request left; whether the peer acted on it is unknown.
    case unanswered(HTTPFaultReason)

    /// What happened, whichever kind it is.
    package var reason: HTTPFaultReason {
        switch self {
        case .notSent(let reason), .unanswered(let reason): reason
        }
    }
}

/// The closed list of what can go wrong with an exchange.
package enum HTTPFaultReason: String, Equatable, Sendable {
    /// No connection could be made: name resolution, TCP, TLS or the first SETTINGS.
    case noConnection = "no_connection"
    /// The peer refused the stream (REFUSED_STREAM; RFC 9113 8.7).
    case refusedStream = "refused_stream"
    /// The peer went away before it looked at the stream (GOAWAY below the stream's id; RFC 9113 6.8).
    case goneAway = "goaway"
    /// The stream was reset with another code.
    case reset = "stream_reset"
    /// The connection ended.
    case connectionLost = "connection_lost"
    /// No whole answer within the request timeout.
    case timeout = "timeout"
    /// It waited for a stream until it was not to be sent any more.
    case overdue = "overdue"
    /// The answer broke HTTP/2 or had no final status.
    case malformedAnswer = "malformed_answer"
    /// The client was closed before the request left.
    case closed = "closed"
}

/// What became of one request.
package struct HTTPResult: Sendable {
    /// The request's own tag.
    package let tag: UInt64
    /// An answer, or why there is none.
    package let outcome: Result<HTTPResponse, HTTPFault>
    /// When the request's first byte went to the connection; nil for what was not sent.
    package let sentAt: ContinuousClock.Instant?
    /// When the result was known.
    package let endedAt: ContinuousClock.Instant

    /// The end of an exchange.
    package init(
        tag: UInt64, outcome: Result<HTTPResponse, HTTPFault>, sentAt: ContinuousClock.Instant?,
        endedAt: ContinuousClock.Instant
    ) {
        self.tag = tag
        self.outcome = outcome
        self.sentAt = sentAt
        self.endedAt = endedAt
    }
}

/// Results that became known in one turn of the loop, with one buffer for their bytes.
package struct HTTPResultBatch: Sendable {
    /// Captured header values and bodies, one after the other.
    package private(set) var bytes: [UInt8] = []
    /// The results, in the order in which they became known.
    package private(set) var results: [HTTPResult] = []

    /// An empty batch.
    package init() {}

    /// Appends bytes and answers where they are.
    package mutating func append(_ buffer: UnsafeBufferPointer<UInt8>) -> ByteSlice {
        let start = bytes.count
        bytes.append(contentsOf: buffer)
        return ByteSlice(start: start, count: buffer.count)
    }

    /// Appends bytes and answers where they are.
    package mutating func append(_ array: [UInt8]) -> ByteSlice {
        array.withUnsafeBufferPointer { append($0) }
    }

    /// Appends a result whose slices point into `bytes`.
    package mutating func add(_ result: HTTPResult) {
        results.append(result)
    }

    /// The bytes of `slice`.
    package subscript(slice: ByteSlice) -> ArraySlice<UInt8> {
        bytes[slice.indices]
    }

    /// Forgets everything and keeps the memory.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
        results.removeAll(keepingCapacity: true)
    }
}
