package import Credentials

/// Why no access token can be had, in one line for the log; never with a part of the account's file or of an answer's
/// own text.
package enum AccessFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The account's file was not accepted.
    case file(ServiceAccountError)
    /// The token endpoint refused the account.
    case refused(TokenRefusal)
    /// The endpoint cannot be reached, or is at fault; a token in use serves until its end.
    case unavailable(String)

    package var description: String {
        switch self {
        case .file(let error): error.description
        case .refused(let refusal):
            "the token endpoint answers \(refusal.status) \(refusal.reason): \(refusal.row.meaning)"
                + "\(Self.clocks(refusal.clockAhead)); \(refusal.row.remedy)"
        case .unavailable(let reason): reason
        }
    }

    /// The word for ledger, alarms and metrics.
    var word: String {
        switch self {
        case .file(let error):
            switch error.problem {
            case .file: "key_file_refused"
            case .signing: "signing_failed"
            default: "key_refused"
            }
        case .refused(let refusal): refusal.reason
        case .unavailable: "unavailable"
        }
    }

    /// The HTTP status behind it; 0 for none.
    var status: Int16 {
        switch self {
        case .refused(let refusal): refusal.status
        case .file, .unavailable: 0
        }
    }

    private static func clocks(_ ahead: Int64?) -> String {
        guard let ahead else { return "" }
        return " (this clock is \(abs(ahead)) s \(ahead < 0 ? "behind" : "ahead of") the answer's date)"
    }
}
