import OutboxCore
import Postgres

/// Writes one flush of one lease. It may be repeated at any time, by any session, with the same arrays: the right to
/// put a row anywhere comes from its own bit in the lease, cleared in the same statement, so a repetition finds
/// nothing to move. It touches no row and no key that a producer or a back end can hold. Ledger rows that were written
/// without their bits (halves of a flush that was refused) are refused as duplicates when the flush comes as a whole,
/// and narrowed down once more.
///
/// | parameter | type | meaning |
/// | --- | --- | --- |
/// | $1, $2, $3 | uuid, uuid, int2 | batch, owner, route |
/// | $4 | varbit | the positions that leave, one bit each |
/// | $5 | int4 | the worker's number |
/// | $6, $7 | uuid[] | ledger rows: id, notification |
/// | $8, $9, $10 | int8[], int4[], int4[] | device, which token of it, tenant |
/// | $11, $12, $13 | int2[], int2[], bool[] | attempt, outcome, final |
/// | $14 | int8[] | the target's wait in milliseconds, or null |
/// | $15, $16, $17 | int2[], text[], text[] | provider status, reason, id; null where there is none |
/// | $18, $19 | timestamptz[], int4[] | first byte sent, microseconds to the whole answer or null |
/// | $20 … $24 | int2[], int8[], int2[], int8[], bool[] | back: position, wait in ms, attempt, cursor, forget crashes |
/// | $25 … $28 | int2[], text[], text[], bool[] | ends: position, status, reason, the whole notification |
///
/// $14, $16 and $17 may end with the last row that has a value: `unnest` fills up what is shorter.
///
/// One result row: `owned` bool (the lease is still ours; lapsed but not recovered is ours), `inserted` int8 (new
/// ledger rows), `returned` int8, `ended` int8. Neither owned nor inserted: our own repetition. Inserted but not
/// owned: fenced.
enum SettleStatement {
    static let statement = PostgresStatement(
        "settle", text,
        parameterTypes: [
            .uuid, .uuid, .int2, .varbit, .int4, .uuid.array, .uuid.array, .int8.array, .int4.array, .int4.array,
            .int2.array, .int2.array, .bool.array, .int8.array, .int2.array, .text.array, .text.array,
            .timestamptz.array, .int4.array, .int2.array, .int8.array, .int2.array, .int8.array, .bool.array,
            .int2.array, .text.array, .text.array, .bool.array,
        ])

    static let text = """
        WITH own AS MATERIALIZED (
            -- the fence: the lease in its newest version, locked. A flush that was written before has cleared its
            -- bits. The arrays are detoasted once, and only when rows go somewhere
            SELECT
                l.batch,
                l.route_no,
                l.open & $4::varbit AS leaving,
                l.open & ~($4::varbit) AS rest,
                l.open & $4::varbit = $4::varbit AND bit_count($4::varbit) > 0 AS is_first,
                CASE WHEN moves THEN l.ids || '{}'::uuid[] END AS ids,
                CASE WHEN moves THEN l.tenants || '{}'::int4[] END AS tenants,
                CASE WHEN moves THEN l.urgencies || '{}'::int2[] END AS urgencies,
                CASE WHEN moves THEN l.crashes || '{}'::int2[] END AS crashes
            FROM postbell.leases l, (SELECT cardinality($20::int2[]) + cardinality($25::int2[]) > 0 AS moves) z
            WHERE l.batch = $1::uuid AND l.owner = $2::uuid
            FOR UPDATE OF l
        ),
        entry AS NOT MATERIALIZED (
            -- late: the lease is not ours any more
            SELECT
                x.id, x.notification_id, $1::uuid, x.device_no, x.token_seq, x.tenant_no, $5::int4, $3::int2,
                x.attempt, x.outcome, x.final, NOT EXISTS (SELECT 1 FROM own),
                now() + x.wait * interval '1 millisecond',
                x.status, x.reason, x.provider_id, x.attempted_at, x.answer_us
            FROM unnest(
                $6::uuid[], $7::uuid[], $8::int8[], $9::int4[], $10::int4[],
                $11::int2[], $12::int2[], $13::bool[], $14::int8[],
                $15::int2[], $16::text[], $17::text[], $18::timestamptz[], $19::int4[]
            ) x(
                id, notification_id, device_no, token_seq, tenant_no,
                attempt, outcome, final, wait,
                status, reason, provider_id, attempted_at, answer_us
            )
        ),
        written AS (
            -- the usual case: nothing can be there, so nothing is looked for, which would be a quarter of the settle
            INSERT INTO postbell.deliveries (
                id, notification_id, batch, device_no, token_seq, tenant_no, worker_no, route_no,
                attempt, outcome, final, late, retry_at,
                provider_status, reason, provider_id, attempted_at, answer_us)
            SELECT * FROM entry WHERE (SELECT is_first FROM own)
        ),
        repeated AS (
            -- the ids are the worker's, so a repetition adds nothing
            INSERT INTO postbell.deliveries (
                id, notification_id, batch, device_no, token_seq, tenant_no, worker_no, route_no,
                attempt, outcome, final, late, retry_at,
                provider_status, reason, provider_id, attempted_at, answer_us)
            SELECT * FROM entry WHERE (SELECT is_first FROM own) IS NOT true
            ON CONFLICT DO NOTHING
            RETURNING 1
        ),
        back AS (
            -- only what is still open AND leaves now may go anywhere
            INSERT INTO postbell.queue (
                due_at, notification_id, after_device, tenant_no, route_no, crashes, urgency, attempt, prior)
            SELECT
                now() + r.wait * interval '1 millisecond',
                own.ids[r.pos],
                r.after_device,
                own.tenants[r.pos],
                own.route_no,
                CASE WHEN r.clear THEN 0 ELSE own.crashes[r.pos] END,
                own.urgencies[r.pos],
                r.attempt,
                true
            FROM own, unnest($20::int2[], $21::int8[], $22::int2[], $23::int8[], $24::bool[])
                r(pos, wait, attempt, after_device, clear)
            WHERE get_bit(own.leaving, r.pos - 1) = 1
            ORDER BY 2
            ON CONFLICT DO NOTHING
            RETURNING 1
        ),
        ended AS (
            INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason)
            SELECT
                own.ids[e.pos],
                own.tenants[e.pos],
                CASE WHEN e.whole THEN NULL ELSE own.route_no END,
                e.status,
                e.reason
            FROM own, unnest($25::int2[], $26::text[], $27::text[], $28::bool[]) e(pos, status, reason, whole)
            WHERE get_bit(own.leaving, e.pos - 1) = 1
            ORDER BY 1
            RETURNING 1
        ),
        shrunk AS (
            UPDATE postbell.leases t
            SET open = own.rest
            FROM own
            WHERE t.batch = own.batch AND bit_count(own.rest) > 0 AND bit_count(own.leaving) > 0
        ),
        finished AS (
            -- the database decides that nothing is left, never the worker's word
            DELETE FROM postbell.leases t
            USING own
            WHERE t.batch = own.batch AND bit_count(own.rest) = 0
        )
        SELECT
            EXISTS (SELECT 1 FROM own) AS owned,
            CASE WHEN (SELECT is_first FROM own) THEN cardinality($6::uuid[])
                ELSE (SELECT count(*) FROM repeated) END AS inserted,
            (SELECT count(*) FROM back) AS returned,
            (SELECT count(*) FROM ended) AS ended
        """

    /// What the settle answered.
    static func report(_ result: PostgresResult) throws(PostgresError) -> SettleReport {
        guard result.rowCount == 1 else {
            throw PostgresError(.decoding, operation: "settle", message: "expected one row")
        }
        return SettleReport(
            owned: try result.bool(0, 0), ledgerRows: Int(try result.int8(0, 1)),
            returned: Int(try result.int8(0, 2)))
    }
}
