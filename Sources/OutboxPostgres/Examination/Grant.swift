/// One right on one object of the schema `postbell`, or on the schema itself.
package struct Grant: Sendable, Hashable, CustomStringConvertible {
    /// What kind of object it is on.
    package enum Kind: String, Sendable {
        /// The schema itself.
        case schema
        /// A table or view.
        case table
        /// A function, whose name has the types of its arguments with it, as `oidvectortypes` writes them.
        case function
        /// A sequence.
        case sequence
    }

    /// As SQL names it: `SELECT`, `EXECUTE`, ….
    package let privilege: String
    /// What kind of object it is on.
    package let kind: Kind
    /// The object, without its schema.
    package let object: String
    /// The column; empty for the whole object.
    package let column: String

    /// A right on `object`.
    package init(_ privilege: String, _ kind: Kind, _ object: String, column: String = "") {
        self.privilege = privilege
        self.kind = kind
        self.object = object
        self.column = column
    }

    /// As GRANT and REVOKE take it: `UPDATE (open) ON postbell.leases`.
    package var description: String {
        let right = column.isEmpty ? privilege : "\(privilege) (\(column))"
        switch kind {
        case .schema: return "\(right) ON SCHEMA \(object)"
        case .table: return "\(right) ON postbell.\(object)"
        case .function: return "\(right) ON FUNCTION postbell.\(object)"
        case .sequence: return "\(right) ON SEQUENCE postbell.\(object)"
        }
    }
}
