/// Recovers lapsed leases of anybody; a function, because it needs two snapshots (see migration 0005).
///
/// Parameters: $1 timestamptz healthy since (a lapse that began before it is no crash), $2 int4 most leases, $3 int4
/// most crashes, $4 int4 the worker's number. Result: `leases`, `rows`, `unknowns`, `set_aside` int8.
enum RecoverStatement {
    static let name = "recover"

    static let text = """
        SELECT count(*) AS leases, coalesce(sum(items), 0)::int8 AS rows, coalesce(sum(unknowns),
            0)::int8 AS unknowns,
            coalesce(sum(set_aside), 0)::int8 AS set_aside
        FROM postbell.recover($1::timestamptz, $2::int4, $3::int4, $4::int4)
        """
}
