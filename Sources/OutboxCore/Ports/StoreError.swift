/// Why a statement of the store did not do its work.
package struct StoreError: Error, Equatable, Sendable, CustomStringConvertible {
    /// How the caller goes on.
    package enum Kind: Equatable, Sendable {
        /// The connection failed: whether the statement was carried out is unknown. Repeat, or adopt.
        case connection
        /// The database asks to try again (deadlock, serialization, lock or statement timeout).
        case transient
        /// The database refused a value: without it the statement succeeds.
        case content
        /// The database refused the statement, whatever its values: a right is missing, or an object.
        case refused
        /// The answer could not be read: a schema that this worker does not know.
        case incompatible
    }

    /// How the caller goes on.
    package let kind: Kind
    /// The statement's name.
    package let operation: String
    /// The server's SQLSTATE; empty where no server answered.
    package let sqlState: String
    /// What happened, without any value of a row.
    package let message: String

    /// A failure of the store.
    package init(kind: Kind, operation: String, sqlState: String = "", message: String) {
        self.kind = kind
        self.operation = operation
        self.sqlState = sqlState
        self.message = message
    }

    package var description: String {
        sqlState.isEmpty ? "\(operation): \(message)" : "\(operation): \(message) (SQLSTATE \(sqlState))"
    }
}
