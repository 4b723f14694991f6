/// Recognises libpq's complaints about parameters themselves: it looks at most of them only when it connects, and at
/// some only once a server has answered. Their values may be anything, a password in the wrong place among it.
enum ParameterFault {
    /// The fault that `account`, libpq's account of a failed attempt, speaks of, without any value; nil when it speaks
    /// of a server. `isFirst`: libpq gave up before it had begun to wait for anybody.
    static func read(_ account: String, isFirst: Bool) -> PostgresError? {
        let lines = account.split(whereSeparator: \.isNewline)
        if let line = lines.first(where: { $0.contains(badInteger) }) {
            return fault("invalid integer value for connection option \(option(line))")
        }
        guard isFirst, !lines.isEmpty, !lines.contains(where: isAboutServer) else { return nil }
        return fault(onOneLine(withoutQuotedParts(account)))
    }

    private static let badInteger = "invalid integer value \""

    /// The name behind the value, which comes last: `… for connection option "port"`.
    private static func option(_ line: Substring) -> String {
        let name = line.split(separator: "\"").last ?? ""
        return "\"" + name.filter { $0.isASCII && ($0.isLetter || $0 == "_") } + "\""
    }

    /// How libpq begins when the parameters were fit to reach for a server, or when it lacks something else.
    private static func isAboutServer(_ line: Substring) -> Bool {
        ["connection to server ", "could not translate host name ", "could not look up ", "out of memory"].contains {
            line.hasPrefix($0)
        }
    }

    private static func fault(_ reason: String) -> PostgresError {
        PostgresError(.configuration, operation: "connect", message: "the connection parameters are wrong: \(reason)")
    }
}
