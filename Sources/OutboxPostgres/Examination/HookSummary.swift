package import Postgres

/// The hooks of kinds, and those that cannot be asked as things are.
package struct HookSummary: Sendable, Equatable {
    /// A hook that is not asked.
    package struct Fault: Sendable, Equatable {
        /// The kind's name.
        package let kind: String
        /// `stale` or `access`.
        package let purpose: String
        /// The function, as SQL names it.
        package let function: String
        /// What is wrong with it.
        package let text: String

        /// A hook that is not asked.
        package init(kind: String, purpose: String, function: String, text: String) {
            self.kind = kind
            self.purpose = purpose
            self.function = function
            self.text = text
        }
    }

    /// How many hooks there are.
    package let count: Int64
    /// Those of them that cannot be asked.
    package let faults: [Fault]

    /// Hooks as they are.
    package init(count: Int64, faults: [Fault]) {
        self.count = count
        self.faults = faults
    }

    /// Reads them through a session in a dispatcher's role.
    package static func read(from connection: PostgresConnection) async throws(PostgresError) -> HookSummary {
        let count = try await connection.query(PostgresStatement("hook_count", "SELECT count(*) FROM postbell.hooks"))
        let result = try await connection.query(
            PostgresStatement(
                "hook_faults", "SELECT f.kind, f.purpose, f.function, f.fault FROM postbell.hook_faults() f"))
        var faults: [Fault] = []
        for row in 0..<result.rowCount {
            faults.append(
                Fault(
                    kind: try result.text(row, 0), purpose: try result.text(row, 1), function: try result.text(row, 2),
                    text: try result.text(row, 3)))
        }
        return HookSummary(count: try count.int8(0, 0), faults: faults)
    }
}
