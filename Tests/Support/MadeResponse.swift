package import HTTP2

/// A response as the transport hands it over, with its bytes.
package struct MadeResponse {
    /// The answer; its slices point into `bytes`.
    package var response: HTTPResponse
    /// The buffer of the batch it came in.
    package var bytes: [UInt8]

    /// An answer with this body and these captured headers, empty ones being absent.
    package init(_ status: Int, _ body: [UInt8], captured headers: [String] = [], afterIdle: Bool = false) {
        var bytes = Array("noise before".utf8)
        func append(_ text: [UInt8]) -> ByteSlice {
            let start = bytes.count
            bytes += text
            return text.isEmpty ? .empty : ByteSlice(start: start, count: text.count)
        }
        var captured = InlineArray<4, ByteSlice>(repeating: .empty)
        for (index, header) in headers.enumerated() { captured[index] = append(Array(header.utf8)) }
        response = HTTPResponse(
            status: status, captured: captured, body: append(body), bodyWasCut: false, afterIdle: afterIdle)
        self.bytes = bytes + Array("noise behind".utf8)
    }

    /// The same with a body of text.
    package init(_ status: Int, _ body: String = "", captured headers: [String] = [], afterIdle: Bool = false) {
        self.init(status, Array(body.utf8), captured: headers, afterIdle: afterIdle)
    }
}
