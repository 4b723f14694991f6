/// Where to connect to, with TLS in any case.
package struct HTTPSEndpoint: Sendable, Equatable {
    /// Host name or address, without the brackets of an IPv6 address.
    package let host: String
    /// TCP port; 443 unless one was given.
    package let port: Int

    /// Understands `https://host`, `https://host:port` and the same with a slash at the end.
    init(_ text: String) throws(ValueFault) {
        guard text.lowercased().hasPrefix("https://") else { throw ValueFault("is not an https:// URL") }
        var rest = text.dropFirst("https://".count)
        if rest.last == "/" { rest = rest.dropLast() }
        if rest.contains("@") { throw ValueFault("has a user name in it") }
        if rest.contains(where: { "/?#".contains($0) }) { throw ValueFault("has something behind host and port") }
        let name: Substring
        if rest.first == "[", let end = rest.firstIndex(of: "]") {
            name = rest[rest.index(after: rest.startIndex)..<end]
            rest = rest[rest.index(after: end)...]
            guard name.isMade(of: { $0.isLetter || $0.isDigit || ":.".utf8.contains($0) }) else { throw Self.noHost }
        } else {
            name = rest.prefix { $0 != ":" }
            rest = rest.dropFirst(name.count)
            guard name.isHostLike, name.utf8.count <= 253 else { throw Self.noHost }
        }
        host = String(name)
        port = try Self.port(rest)
    }

    private static let noHost = ValueFault("has no host name or address in it")

    /// `text` is empty or a colon and a number.
    private static func port(_ text: Substring) throws(ValueFault) -> Int {
        if text.isEmpty { return 443 }
        let digits = text.dropFirst()
        guard text.first == ":", digits.count <= 5, digits.isMade(of: \.isDigit), let port = Int(digits),
            1...65_535 ~= port
        else { throw ValueFault("has no valid port") }
        return port
    }

    /// The endpoint as a URL.
    package var url: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == 443 ? "https://\(name)" : "https://\(name):\(port)"
    }
}
