/// A statement or a connection failed: what, where, and whether a repetition can help.
///
/// Never carries a password, a parameter or the server's DETAIL, which repeats values of the row.
package struct PostgresError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of trouble it was.
    package enum Kind: Sendable, Hashable {
        /// The server cannot be reached, or the connection broke.
        case connection
        /// The server answered with an error.
        case server(SQLState)
        /// A local deadline passed: of connecting, of waiting for a turn, or of the statement.
        case deadline
        /// The answer is not what the caller expects: a type, a null, a count of results.
        case decoding
        /// The server is in recovery or read-only, and a writing session was asked for.
        case recovery
        /// The connection had been closed, or had failed, before the statement was sent.
        case closed
        /// Too many statements wait for their turn on the connection.
        case overloaded
        /// An earlier statement of the same pipeline failed, so the server skipped this one.
        case skipped
        /// The connection string or a setting is wrong.
        case configuration
    }

    /// What kind of trouble it was.
    package let kind: Kind
    /// The statement's name, or `connect`, `listen`, and the like.
    package let operation: String
    /// What happened, in the server's or the library's words where there are any.
    package let message: String
    /// Whether the statement had been sent, so that it may have taken effect although no answer came.
    package var mayHaveRun = false
    /// The constraint that was violated, if the server named one.
    package var constraint: String?
    /// The table concerned, if the server named one.
    package var table: String?
    /// The column concerned, if the server named one.
    package var column: String?

    /// An error without particulars of a row.
    package init(_ kind: Kind, operation: String, message: String, mayHaveRun: Bool = false) {
        self.kind = kind
        self.operation = operation
        self.message = message
        self.mayHaveRun = mayHaveRun
    }

    /// The server's code, if the server answered.
    package var sqlState: SQLState? {
        if case .server(let state) = kind { state } else { nil }
    }

    /// Whether the connection is of no use any more, so that a session must make another.
    ///
    /// A read-only answer counts: the server became a standby under us, and another host may be the primary now.
    package var isConnectionFault: Bool {
        switch kind {
        case .connection, .recovery, .closed: true
        case .deadline, .decoding, .overloaded, .skipped, .configuration: false
        case .server(let state):
            state.isIn(.connectionException) || Self.endings.contains(state)
        }
    }

    /// Whether the same statement may succeed when it is simply repeated later.
    package var isTransient: Bool {
        switch kind {
        case .deadline, .overloaded, .skipped: true
        case .server(let state):
            isConnectionFault || state.isIn(.insufficientResources) || state.isIn(.transactionRollback)
                || state == .lockNotAvailable || state == .queryCanceled
        default: isConnectionFault
        }
    }

    private static let endings: Set<SQLState> = [
        .adminShutdown, .crashShutdown, .cannotConnectNow, .databaseDropped, .idleSessionTimeout, .readOnlyTransaction,
        .tooManyConnections,
    ]

    package var description: String {
        var text = operation
        if let sqlState { text += ": SQLSTATE \(sqlState)" } else { text += ": \(kind)" }
        text += ": \(message)"
        if let constraint { text += " (constraint \(constraint))" }
        if mayHaveRun { text += " (may have taken effect)" }
        return text
    }

    /// The same error under the name of another operation.
    func during(_ operation: String, mayHaveRun: Bool) -> PostgresError {
        var error = PostgresError(kind, operation: operation, message: message, mayHaveRun: mayHaveRun)
        error.constraint = constraint
        error.table = table
        error.column = column
        return error
    }
}
