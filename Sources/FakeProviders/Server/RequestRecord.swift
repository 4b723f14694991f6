import Credentials

/// What is put on record about a request: a line of the log, a value for tests. The same fields for every service.
struct RequestRecord {
    /// The service's name in the log.
    let service: StaticString
    let connection: Int
    let stream: ServerStream
    /// Where `:method` and `:path` stand in the stream's header bytes.
    let method: Range<Int>?
    let path: Range<Int>?
    /// `kid` and `iat` of the signed token behind the request, if they could be read.
    var keyID: String?
    var issuedAt: Int64?
    /// The status answered; 0 when none was.
    let status: Int
    /// The reason answered, or what is done instead of an answer.
    let note: String
    /// Whether the body is kept; one that carries a credential is not.
    var showsBody = true
    /// Whether the bearer is a signed token, whose claims may be kept.
    var bearerIsSigned = true

    /// Appends the inside of the log's JSON object.
    func append(to line: inout [UInt8], microseconds: Int64) {
        JSONText.appendName("time", to: &line)
        line.append(UInt8(ascii: "\""))
        WallClock.appendText(microseconds, to: &line)
        line.append(UInt8(ascii: "\""))
        JSONText.appendName("service", to: &line)
        JSONText.appendString(
            UnsafeBufferPointer(start: service.utf8Start, count: service.utf8CodeUnitCount), to: &line)
        JSONText.appendName("connection", to: &line)
        JSONText.appendNumber(connection, to: &line)
        JSONText.appendName("stream", to: &line)
        JSONText.appendNumber(stream.number, to: &line)
        JSONText.appendName("method", to: &line)
        JSONText.appendString(value(method), to: &line)
        JSONText.appendName("path", to: &line)
        JSONText.appendString(value(path), to: &line)
        appendHeaders(to: &line)
        appendBody(to: &line)
        JSONText.appendName("jwt", to: &line)
        appendToken(to: &line)
        JSONText.appendName("status", to: &line)
        JSONText.appendNumber(status, to: &line)
        JSONText.appendName("reason", to: &line)
        JSONText.appendString(note.utf8, to: &line)
    }

    /// The record as a value; `token` is the target's.
    func seen(token: String) -> SeenRequest {
        var headers: [String: String] = [:]
        for header in stream.headers {
            headers[stream.text(header.name)] = String(decoding: shown(header), as: UTF8.self)
        }
        return SeenRequest(
            connection: connection, stream: stream.number, method: String(decoding: value(method), as: UTF8.self),
            path: String(decoding: value(path), as: UTF8.self), token: token, headers: headers,
            body: showsBody ? String(decoding: stream.body, as: UTF8.self) : "", keyID: keyID, issuedAt: issuedAt,
            status: status, reason: note)
    }

    private func value(_ field: Range<Int>?) -> ArraySlice<UInt8> {
        field.map { stream.headerBytes[$0] } ?? []
    }

    /// A header's value as it may be shown. A signed bearer loses its signature, and with it its use; of another one
    /// only the scheme is left.
    private func shown(_ header: ServerStream.Header) -> ArraySlice<UInt8> {
        let value = stream.headerBytes[header.value]
        guard stream.holds("authorization", at: header.name) else { return value }
        guard bearerIsSigned else { return value.prefix { $0 != UInt8(ascii: " ") } }
        guard let dot = value.lastIndex(of: UInt8(ascii: ".")) else { return [] }
        return value[..<dot]
    }

    private func appendHeaders(to line: inout [UInt8]) {
        JSONText.appendName("headers", to: &line)
        line.append(UInt8(ascii: "{"))
        for header in stream.headers where stream.headerBytes[header.name.lowerBound] != UInt8(ascii: ":") {
            if line.last != UInt8(ascii: "{") { line.append(UInt8(ascii: ",")) }
            JSONText.appendString(stream.headerBytes[header.name], to: &line)
            line.append(UInt8(ascii: ":"))
            JSONText.appendString(shown(header), to: &line)
        }
        line.append(UInt8(ascii: "}"))
    }

    /// A JSON object stands in the log as itself, so that tools can look into it; anything else as a string.
    private func appendBody(to line: inout [UInt8]) {
        JSONText.appendName("body", to: &line)
        guard showsBody else { return JSONText.appendString([], to: &line) }
        guard stream.body.withUnsafeBufferPointer({ JSONScanner.isObject($0) }) else {
            return JSONText.appendString(stream.body, to: &line)
        }
        // A line break can only stand between JSON's own parts; a space means the same.
        line.append(contentsOf: stream.body.lazy.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 })
    }

    private func appendToken(to line: inout [UInt8]) {
        line.append(UInt8(ascii: "{"))
        if let keyID {
            JSONText.appendName("kid", to: &line)
            JSONText.appendString(keyID.utf8, to: &line)
        }
        if let issuedAt {
            JSONText.appendName("iat", to: &line)
            JSONText.appendNumber(issuedAt, to: &line)
        }
        line.append(UInt8(ascii: "}"))
    }
}
