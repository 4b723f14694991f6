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
        return error.kind == .decoding ? .incompatible : .refused
    }
}
