/// One request as it arrives, and its answer as it is put together. Used again for later requests, so that a request
/// costs no allocation once a connection is warm.
final class ServerStream {
    /// A header: where its name and its value stand in `headerBytes`.
    struct Header {
        var name: Range<Int>
        var value: Range<Int>
    }

    /// The stream's id (RFC 9113 5.1.1).
    private(set) var number: Int32 = 0
    /// Place in the connection's list of live streams.
    var slot = 0
    /// Names and values of the request's headers.
    private(set) var headerBytes: [UInt8] = []
    /// The request's headers in order, pseudo-headers among them.
    private(set) var headers: [Header] = []
    /// The request's body as far as it was kept.
    private(set) var body: [UInt8] = []
    /// Bytes of body that arrived, kept or not.
    private(set) var bodySize = 0
    /// Whether an answer was given, so that it is given once.
    var isAnswered = false

    /// Names and values of the answer's headers.
    private(set) var answerBytes: [UInt8] = []
    /// The answer's headers, `:status` first.
    private(set) var answerHeaders: [Header] = []
    /// The answer's body.
    var answerBody: [UInt8] = []
    /// Bytes of the answer's body that were sent.
    var answerSent = 0

    /// Most bytes of headers and of body that are kept of a request.
    static let headerLimit = 16 * 1024
    static let bodyLimit = 16 * 1024

    /// Forgets the last request and keeps the memory.
    func begin(_ number: Int32) {
        self.number = number
        headerBytes.removeAll(keepingCapacity: true)
        headers.removeAll(keepingCapacity: true)
        body.removeAll(keepingCapacity: true)
        bodySize = 0
        isAnswered = false
        answerBytes.removeAll(keepingCapacity: true)
        answerHeaders.removeAll(keepingCapacity: true)
        answerBody.removeAll(keepingCapacity: true)
        answerSent = 0
    }

    /// Adds a header as it arrived; false when the request has too many.
    func addHeader(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Bool {
        guard headerBytes.count + name.count + value.count <= Self.headerLimit else { return false }
        let start = headerBytes.count
        headerBytes.append(contentsOf: name)
        headerBytes.append(contentsOf: value)
        let middle = start + name.count
        headers.append(Header(name: start..<middle, value: middle..<headerBytes.count))
        return true
    }

    /// Adds a piece of the body as it arrived.
    func addBody(_ piece: UnsafeBufferPointer<UInt8>) {
        bodySize += piece.count
        let room = Self.bodyLimit - body.count
        if room > 0 { body.append(contentsOf: piece.prefix(room)) }
    }

    /// Sets the answer's status; before any of its headers.
    func answer(status: Int) {
        precondition((100...999).contains(status) && answerHeaders.isEmpty, "the status comes first, once")
        addAnswerHeader(":status") { bytes in
            bytes.append(UInt8(48 + status / 100))
            bytes.append(UInt8(48 + status / 10 % 10))
            bytes.append(UInt8(48 + status % 10))
        }
    }

    /// Adds a header to the answer.
    func addAnswerHeader(_ name: StaticString, _ value: (inout [UInt8]) -> Void) {
        let start = answerBytes.count
        answerBytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        let middle = answerBytes.count
        value(&answerBytes)
        answerHeaders.append(Header(name: start..<middle, value: middle..<answerBytes.count))
    }

    /// Whether exactly `text` stands at `range` of the header bytes.
    func holds(_ text: StaticString, at range: Range<Int>) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        return headerBytes.withUnsafeBufferPointer { bytes in
            for offset in 0..<range.count where bytes[range.lowerBound + offset] != text.utf8Start[offset] {
                return false
            }
            return true
        }
    }

    /// The value in `range` as text.
    func text(_ range: Range<Int>) -> String {
        String(decoding: headerBytes[range], as: UTF8.self)
    }
}
