/// Why a hook gave no answer that counts. Says nothing in the app's own words, which may repeat values of rows.
package struct HookFault: Error, Equatable, Sendable {
    /// What went wrong.
    package enum Cause: String, Equatable, Sendable {
        /// No answer within the hook's timeout.
        case timeout = "no answer within its timeout"
        /// The function, or something that it calls, raised an error.
        case raised = "it raised an error"
        /// The function is gone, or is not what a hook must be any more.
        case unusable = "its function is gone, or not what a hook must be"
        /// A right is missing: to call the function, or within it.
        case notPermitted = "a right is missing, to call it or within it"
        /// The hook was taken out of the catalog.
        case removed = "it was removed"
        /// It answered ids that it was not asked about, or null.
        case foreignAnswer = "it answered ids that it was not asked about"
        /// There was no session to ask it on.
        case unreachable = "no session of the database to ask it on"
    }

    /// Which of the kind's hooks; nil when none was asked.
    package let purpose: HookPurpose?
    /// What went wrong.
    package let cause: Cause
    /// The server's SQLSTATE; empty where no server answered with an error.
    package let sqlState: String

    /// A fault of one hook.
    package init(_ purpose: HookPurpose?, _ cause: Cause, sqlState: String = "") {
        self.purpose = purpose
        self.cause = cause
        self.sqlState = sqlState
    }

    /// For people: `stale: it raised an error (SQLSTATE 22012)`.
    package var text: String {
        let hook = purpose.map { "\($0.rawValue): " } ?? ""
        return hook + cause.rawValue + (sqlState.isEmpty ? "" : " (SQLSTATE \(sqlState))")
    }
}
