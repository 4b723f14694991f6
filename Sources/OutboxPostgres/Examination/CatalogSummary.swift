import OutboxCore
package import Postgres

/// The catalog of kinds, in numbers and by what has to be known of it.
package struct CatalogSummary: Sendable, Equatable {
    /// Kinds that rows can be enqueued for, but for `test`, which comes with the schema.
    package let enabled: Int64
    /// Those of them whose producers write themselves what providers are sent.
    package let raw: [String]
    /// Kinds that this program cannot read, with what it is: their notifications wait.
    package let unreadable: [String]

    /// Reads the catalog through a session that may read `postbell.kinds`: the numbers from the current revisions, what
    /// cannot be read from all of them.
    package static func read(from connection: PostgresConnection) async throws(PostgresError) -> CatalogSummary {
        let result = try await connection.query(statement)
        let raw = try result.withArray(0, 1, of: .text) { (reader: inout PostgresArrayReader) throws(PostgresError) in
            var names: [String] = []
            for _ in 0..<reader.count { names.append(try reader.nextText() ?? "") }
            return names
        }
        let kinds = try CatalogAnswer.kinds(try await connection.query(CatalogStatement.kinds))
        let unreadable = Set(kinds.compactMap { kind in kind.unreadable.map { "\(kind.name) (\($0))" } })
        return CatalogSummary(enabled: try result.int8(0, 0), raw: raw, unreadable: unreadable.sorted())
    }

    private static let statement = PostgresStatement(
        "catalog_summary",
        """
        SELECT
            count(*) AS enabled,
            coalesce(array_agg(k.name ORDER BY k.name) FILTER (WHERE k.presentation = 'raw'), '{}') AS raw
        FROM postbell.kinds k
        WHERE k.current AND k.enabled AND k.name <> 'test'
        """)
}
