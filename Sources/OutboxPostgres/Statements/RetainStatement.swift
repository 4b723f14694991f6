import Postgres

/// Removes what was kept long enough (see migrations 0019 and 0020): a small batch of rows, and one day of the ledger.
enum RetainStatement {
    /// Parameter: $1 int4 most notifications to look at. Result, one row: `is_behind` bool, whether there is more.
    static let rows = PostgresStatement(
        "retain", "SELECT coalesce(bool_or(r.is_behind), false) AS is_behind FROM postbell.retain($1::int4) r",
        parameterTypes: [.int4])

    /// No parameter. Result, one row: `is_behind` bool, whether a day was dropped, so that there may be another.
    static let day = PostgresStatement(
        "drop_ledger_day", "SELECT postbell.drop_ledger_day() IS NOT NULL AS is_behind", parameterTypes: [])

    static func command(limit: Int) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(Int32(clamping: limit))
        return PostgresCommand(rows, parameters)
    }
}
