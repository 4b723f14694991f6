package import Postgres

/// What a session's role may do in a database, compared with what a worker has to.
package struct RoleRights: Sendable {
    /// Rights that a worker needs and the role lacks.
    package let missing: [Grant]
    /// Rights on the schema's objects that no worker needs. Empty for a superuser, who has all.
    package let excess: [Grant]
    /// Other roles whose rights the login has or can take up: the schema's own and PostgreSQL's predefined ones.
    package let memberships: [String]
    /// Attributes of the login or of its role, as ALTER ROLE names them: `SUPERUSER`, `BYPASSRLS`, ….
    package let attributes: [String]
    /// Tables of other schemas that the role may change, at most `listLimit`.
    package let writableTables: [String]
    /// Tables of other schemas that the role may read, at most `listLimit`.
    package let readableTables: [String]
    /// Where the role may create objects: `DATABASE …`, `SCHEMA …`.
    package let creates: [String]
    /// Whether the role has the rights of postbell_dispatcher without further ado.
    package let inheritsDispatcher: Bool
    /// Whether the role is a member of postbell_dispatcher at all.
    package let isDispatcher: Bool

    /// Longest list that is answered.
    package static let listLimit = 6

    /// Asks a session that acts as the role. Any role may ask; the schema has to be there.
    package static func read(
        from connection: PostgresConnection, expecting grants: [Grant] = Grant.dispatcher
    ) async throws(PostgresError) -> RoleRights {
        let compared = try await connection.query(RoleRightsStatement.grants, RoleRightsStatement.parameters(grants))
        var (missing, excess): ([Grant], [Grant]) = ([], [])
        for row in 0..<compared.rowCount {
            guard let kind = Grant.Kind(rawValue: try compared.text(row, 1)) else { continue }
            let grant = Grant(
                try compared.text(row, 4), kind, try compared.text(row, 2), column: try compared.text(row, 3))
            if try compared.bool(row, 0) { missing.append(grant) } else { excess.append(grant) }
        }
        let result = try await connection.query(RoleRightsStatement.role)
        return RoleRights(
            missing: missing, excess: excess, memberships: try texts(result, 1),
            attributes: try texts(result, 0), writableTables: try texts(result, 2),
            readableTables: try texts(result, 3), creates: try texts(result, 4),
            inheritsDispatcher: try result.bool(0, 5), isDispatcher: try result.bool(0, 6))
    }

    private static func texts(_ result: PostgresResult, _ column: Int) throws(PostgresError) -> [String] {
        try result.withArray(0, column, of: .text) { (reader: inout PostgresArrayReader) throws(PostgresError) in
            var texts: [String] = []
            for _ in 0..<reader.count { texts.append(try reader.nextText() ?? "") }
            return texts
        }
    }
}
