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

    private static func unreadable(_ reason: String) -> PostgresError {
        PostgresError(
            .configuration, operation: "connect", message: "the connection string cannot be read: \(reason)")
    }
}
