/// A statement with parameters, prepared once per connection under its name.
package struct PostgresStatement: Sendable, Hashable {
    /// Its name on the server and in errors and logs: ASCII letters, digits and underscores, at most 63 bytes.
    package let name: String
    /// One SQL statement, parameters as `$1`, `$2`, ….
    package let sql: String
    /// The types of the parameters, in order.
    package let parameterTypes: [PostgresType]

    /// A statement; two different ones on one connection must not share a name.
    package init(_ name: String, _ sql: String, parameterTypes: [PostgresType] = []) {
        precondition(
            !name.isEmpty && name.utf8.count <= 63 && name.utf8.allSatisfy(Self.isAllowed),
            "a statement is named by 1–63 letters, digits or underscores")
        self.name = name
        self.sql = sql
        self.parameterTypes = parameterTypes
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// A statement with the values of its parameters: one step of a pipeline.
package struct PostgresCommand: Sendable {
    /// What is executed.
    package let statement: PostgresStatement
    /// The values of its parameters.
    package let parameters: PostgresParameters

    /// A statement with the values of its parameters.
    package init(_ statement: PostgresStatement, _ parameters: PostgresParameters = PostgresParameters()) {
        self.statement = statement
        self.parameters = parameters
    }
}

/// Where a pipeline lets the server commit.
package enum PipelineCommit: Sendable {
    /// After each statement: each stands alone, an error in one does not touch the next.
    case each
    /// Once, at the end: all of them are one transaction, an error undoes the earlier and skips the later ones.
    case atEnd
}
