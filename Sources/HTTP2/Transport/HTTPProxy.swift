/// A proxy that connections go through: it is asked for a tunnel by CONNECT (RFC 9110 9.3.6), in which TLS to the real
/// host then runs and is verified as without it.
///
/// However it is printed, it is `host:port`; its user and password never are.
package struct HTTPProxy: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
    /// Name or numeric address, without brackets.
    package let host: String
    /// TCP port.
    package let port: UInt16
    /// What the proxy wants to see; nil for one that asks for nothing.
    let credentials: ProxyCredentials?

    /// Reads `http://host:port` or `http://user:password@host:port`; without a port it is 80, and `http://` may be left
    /// out as in the `https_proxy` of many machines.
    ///
    /// Throws what is wrong with the text, without any part of it: a mistyped URL may show a password anywhere.
    package init(url text: String) throws(HTTPProxyError) {
        var rest = Substring(text)
        if let mark = rest.firstRange(of: "://") {
            guard rest[..<mark.lowerBound].lowercased() == "http" else {
                throw HTTPProxyError("is not one of http://, the only kind of proxy that is spoken")
            }
            rest = rest[mark.upperBound...]
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard rest[end...].isEmpty || rest[end...] == "/" else {
            throw HTTPProxyError("has more behind its host and port")
        }
        var authority = rest[..<end]
        if let at = authority.lastIndex(of: "@") {
            credentials = try ProxyCredentials(userInfo: authority[..<at])
            authority = authority[authority.index(after: at)...]
        } else {
            credentials = nil
        }
        let (host, port) = try Self.split(authority)
        self.host = try Self.checked(host)
        self.port = try Self.number(port)
    }

    private static func split(_ authority: Substring) throws(HTTPProxyError) -> (host: Substring, port: Substring?) {
        guard authority.first == "[" else {
            guard let colon = authority.firstIndex(of: ":") else { return (authority, nil) }
            return (authority[..<colon], authority[authority.index(after: colon)...])
        }
        guard let end = authority.firstIndex(of: "]") else {
            throw HTTPProxyError("has a bracket without its other half")
        }
        let host = authority[authority.index(after: authority.startIndex)..<end]
        let rest = authority[authority.index(after: end)...]
        guard !rest.isEmpty else { return (host, nil) }
        guard rest.first == ":", host.contains(":") else { throw HTTPProxyError("has brackets around no IPv6 address") }
        return (host, rest.dropFirst())
    }

    private static func checked(_ host: Substring) throws(HTTPProxyError) -> String {
        guard !host.isEmpty else { throw HTTPProxyError("names no host") }
        let isAddress = host.contains(":")
        let isFit =
            host.utf8.count <= 253
            && host.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."): true
                case UInt8(ascii: ":"): isAddress
                case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"): true
                case UInt8(ascii: "g")...UInt8(ascii: "z"), UInt8(ascii: "G")...UInt8(ascii: "Z"), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    !isAddress
                default: false
                }
            }
        guard isFit else { throw HTTPProxyError("has a host that is neither a name nor an address") }
        return String(host)
    }

    private static func number(_ text: Substring?) throws(HTTPProxyError) -> UInt16 {
        guard let text else { return 80 }
        guard text.utf8.allSatisfy({ $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }), let port = UInt16(text),
            port > 0
        else { throw HTTPProxyError("has a port that is no number from 1 to 65535") }
        return port
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    package var debugDescription: String { description }

    /// Host and port alone.
    package var customMirror: Mirror { Mirror(self, children: ["host": host, "port": port]) }
}

/// Why a text is no URL of a proxy.
package struct HTTPProxyError: Error, Equatable, CustomStringConvertible {
    /// What is wrong, as the rest of a sentence about the URL; never a part of it.
    package let complaint: String

    /// How it is written.
    package static let advice =
        "write http://host:port or http://user:password@host:port, with %XX for special characters of user and password"

    init(_ complaint: String) {
        self.complaint = complaint
    }

    package var description: String { "the proxy's URL \(complaint)" }
}
