import CLibPQ

/// Reads the server's error reports.
enum ServerError {
    /// The error in a failed result; the caller keeps `result`.
    static func read(_ result: OpaquePointer, operation: String, mayHaveRun: Bool = false) -> PostgresError {
        guard let state = field(result, .sqlState).flatMap({ SQLState($0) }) else {
            // Made by libpq itself: the connection broke.
            let message = PQresultErrorMessage(result).map { onOneLine(String(cString: $0)) } ?? ""
            return PostgresError(.connection, operation: operation, message: message, mayHaveRun: mayHaveRun)
        }
        var message = field(result, .message) ?? "no message"
        if state.isIn(.dataException) { message = withoutQuotedParts(message) }
        var error = PostgresError(
            .server(state), operation: operation, message: onOneLine(message), mayHaveRun: mayHaveRun)
        error.constraint = field(result, .constraint)
        error.table = field(result, .table)
        error.column = field(result, .column)
        return error
    }

    /// Whether the report ends the session.
    static func isFatal(_ result: OpaquePointer) -> Bool {
        let severity = field(result, .severity)
        return severity == "FATAL" || severity == "PANIC"
    }

    /// The error in libpq's account of a failed attempt to connect, made with verbose errors: one line for each address
    /// that was tried, `…: FATAL:  28P01: the message`, and `LOCATION:` lines. The last code counts.
    /// `isFirst`: it failed before anything had to be waited for.
    static func connectFailure(_ account: String, isFirst: Bool) -> PostgresError {
        if let fault = ParameterFault.read(account, isFirst: isFirst) { return fault }
        var state: SQLState?
        var lines: [String] = []
        for line in account.split(whereSeparator: \.isNewline) where !line.hasPrefix("LOCATION:") {
            let parts = line.split(separator: ":", omittingEmptySubsequences: false)
            // Two spaces stand before the code; one before the severity, and FATAL has the form of a code as well.
            let code = parts.firstIndex { part in
                part.hasPrefix("  ") && SQLState(part.drop { $0 == " " }) != nil
            }
            if let code {
                state = SQLState(parts[code].drop { $0 == " " })
                lines.append((parts[..<code] + parts[(code + 1)...]).joined(separator: ":"))
            } else {
                lines.append(String(line))
            }
        }
        let message = lines.isEmpty ? "no reason given" : onOneLine(lines.joined(separator: "\n"))
        return PostgresError(state.map { .server($0) } ?? .connection, operation: "connect", message: message)
    }

    /// Fields of an error report (`PG_DIAG_…` of postgres_ext.h, which Swift does not import since they are
    /// characters).
    private enum Field: UInt8 {
        case severity = 86  // V, never translated
        case sqlState = 67  // C
        case message = 77  // M
        case constraint = 110  // n
        case table = 116  // t
        case column = 99  // c
    }

    private static func field(_ result: OpaquePointer, _ field: Field) -> String? {
        PQresultErrorField(result, Int32(field.rawValue)).map { String(cString: $0) }
    }
}
