/// The user and the password that a proxy wants. Never printed, whoever prints it.
struct ProxyCredentials: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The value of `Proxy-Authorization`: Basic (RFC 7617), as its bytes.
    let authorization: [UInt8]

    /// Most bytes of user and password together, so that the request to the proxy has a bound.
    private static let sizeMax = 1024

    /// Reads `user:password` or `user`, with %XX for what a URL cannot hold (RFC 3986 3.2.1).
    init(userInfo text: Substring) throws(HTTPProxyError) {
        let bytes = Array(text.utf8)
        let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        let user = try Self.decoded(bytes[..<colon])
        let password = try Self.decoded(bytes[colon...].dropFirst())
        guard !user.isEmpty else { throw HTTPProxyError("has an empty user") }
        // The first colon ends the user (RFC 7617 2), so the proxy would read another one.
        guard !user.contains(UInt8(ascii: ":")) else { throw HTTPProxyError("has a user with a colon in it") }
        guard user.count + password.count <= Self.sizeMax else {
            throw HTTPProxyError("has a user and password of more than \(Self.sizeMax) bytes")
        }
        authorization = Array("Basic ".utf8) + Self.base64(user + [UInt8(ascii: ":")] + password)
    }

    private static func decoded(_ bytes: ArraySlice<UInt8>) throws(HTTPProxyError) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.popFirst().flatMap(nibble), let low = rest.popFirst().flatMap(nibble) else {
                    throw HTTPProxyError("has a % in its user or password that no two hexadecimal digits follow")
                }
                byte = high << 4 | low
            }
            // RFC 7617 2: no control characters in either.
            guard byte >= 0x20, byte != 0x7F else {
                throw HTTPProxyError("has a control character in its user or password")
            }
            result.append(byte)
        }
        return result
    }

    private static func nibble(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// RFC 4648 4.
    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for place in 0..<4 {
                let isFilled = place <= group.count
                text.append(isFilled ? alphabet[Int(bits >> UInt32(18 - 6 * place) & 63)] : UInt8(ascii: "="))
            }
        }
        return text
    }

    var description: String { "redacted" }

    var debugDescription: String { description }

    var customMirror: Mirror { Mirror(self, children: []) }
}
