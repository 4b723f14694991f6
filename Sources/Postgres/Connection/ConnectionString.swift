import CLibPQ

/// Reads connection strings as libpq does.
enum ConnectionString {
    /// The options that `text` sets. The error names no part of the text, which may be a password.
    static func parse(_ text: String) throws(PostgresError) -> [String: String] {
        guard !text.utf8.contains(0) else { throw unreadable("it contains a zero byte") }
        // Anything else is taken by libpq as the name of a database, as in psql; here it is a mistake.
        let isURI = text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
        guard isURI || text.contains("=") || text.allSatisfy(\.isWhitespace) else {
            throw unreadable("expected a URI or a list of keyword=value")
        }
        guard !isURI || !hasStrayAt(text) else {
            throw unreadable("an @ or / in a user name or password is written as %40 or %2F")
        }
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(text, &message) else {
            let reason = message.map { String(cString: $0) } ?? "out of memory"
            PQfreemem(message)
            throw unreadable(onOneLine(withoutQuotedParts(reason)))
        }
        defer { PQconninfoFree(options) }
        var values: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                values[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        return values
    }

    /// Whether a URI has an @ that does not stand between who and where: libpq would take what is before it, a part of
    /// a password, for a host or a database, and everybody would name it.
    private static func hasStrayAt(_ text: String) -> Bool {
        let rest = text[text.index(text.firstIndex(of: "/") ?? text.startIndex, offsetBy: 2)...]
        let address = rest.prefix { $0 != "?" }
        let authority = address.prefix { $0 != "/" }
        return address.count { $0 == "@" } > min(1, authority.count { $0 == "@" })
    }

    private static func unreadable(_ reason: String) -> PostgresError {
        PostgresError(
            .configuration, operation: "connect", message: "the connection string cannot be read: \(reason)")
    }
}
