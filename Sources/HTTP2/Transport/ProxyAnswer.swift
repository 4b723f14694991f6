/// Reads a proxy's answer to CONNECT, byte by byte, up to the end of its header block: what follows belongs to TLS.
///
/// Nothing of the answer is kept but its status: a proxy's own words might repeat what it was sent.
struct ProxyAnswer {
    /// What is known after some bytes.
    enum Verdict: Equatable {
        /// More has to come.
        case incomplete
        /// The tunnel is there.
        case open
        /// Any final status but a 2xx.
        case refused(status: Int)
        /// It is no answer to CONNECT.
        case malformed(String)
    }

    /// Most bytes of the whole answer, interim answers included.
    static let sizeMax = 16 * 1024

    private(set) var verdict = Verdict.incomplete
    private var size = 0
    /// The status line so far, without the reason phrase: `HTTP/1.1 200` (RFC 9112 4).
    private var statusLine: [UInt8] = []
    private var isInStatusLine = true
    /// Bytes of this line, its end not counted.
    private var lineLength = 0
    private var status = 0

    /// Takes bytes until a verdict is reached; answers how many of them belong to the answer.
    mutating func take(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        for (index, byte) in bytes.enumerated() {
            if verdict != .incomplete { return index }
            take(byte)
        }
        return bytes.count
    }

    private mutating func take(_ byte: UInt8) {
        size += 1
        if size > Self.sizeMax {
            verdict = .malformed("it is longer than \(Self.sizeMax) bytes")
        } else if byte == UInt8(ascii: "\n") {
            lineEnded()
        } else if byte == UInt8(ascii: "\r") {
            // Part of the line's end, or of nothing that matters here.
        } else if byte < 0x20 && byte != UInt8(ascii: "\t") || byte == 0x7F {
            verdict = .malformed("it is not HTTP/1.1")
        } else {
            lineLength += 1
            if isInStatusLine { takeStatus(byte) }
        }
    }

    /// "#" stands for a digit.
    private static let form = Array("HTTP/1.# ###".utf8)

    private mutating func takeStatus(_ byte: UInt8) {
        guard statusLine.count < Self.form.count else {
            // The reason phrase, after a space.
            if lineLength == Self.form.count + 1, byte != UInt8(ascii: " ") {
                verdict = .malformed("it is not HTTP/1.1")
            }
            return
        }
        let wanted = Self.form[statusLine.count]
        let isDigit = byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
        guard wanted == UInt8(ascii: "#") ? isDigit : byte == wanted else {
            verdict = .malformed("it is not HTTP/1.1")
            return
        }
        statusLine.append(byte)
    }

    private mutating func lineEnded() {
        if isInStatusLine {
            guard statusLine.count == Self.form.count else {
                verdict = .malformed("it is not HTTP/1.1")
                return
            }
            status = statusLine.suffix(3).reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            statusLine = []
            isInStatusLine = false
            // A refusal needs no more reading. 101 would be another protocol, which nobody has asked for.
            if status < 100 || status == 101 || status >= 300 { verdict = .refused(status: status) }
        } else if lineLength == 0 {
            // After an interim answer another one follows (RFC 9110 15.2).
            if status >= 200 { verdict = .open }
            isInStatusLine = true
        }
        lineLength = 0
    }
}
