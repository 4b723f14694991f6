import OutboxCore
import Postgres

extension StoreError {
    /// A fault of the session as the caller of the store has to take it.
    init(_ error: PostgresError) {
        self.init(
            kind: Self.kind(error), operation: error.operation, sqlState: error.sqlState?.code ?? "",
            message: error.message)
    }

    private static func kind(_ error: PostgresError) -> Kind {
        // Whether it was carried out is unknown: the same question as after a broken connection.
        if error.isConnectionFault || (error.kind == .deadline && error.mayHaveRun) { return .connection }
        if error.isTransient { return .transient }
        if let state = error.sqlState, contentClasses.contains(state.classCode) { return .content }
        return error.kind == .decoding ? .incompatible : .refused
    }

    /// Classes of SQLSTATE that blame a value: data exceptions, constraints, what is too large or too many for a
    /// statement, and what a trigger or function raises (PostgreSQL 18, appendix A).
    private static let contentClasses: Set<String> = ["22", "23", "44", "54", "P0"]
}
