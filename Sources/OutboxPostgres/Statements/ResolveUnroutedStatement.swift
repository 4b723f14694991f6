import OutboxCore
import Postgres

/// Ends the wait of notifications that had no device: those whose principal has one now get their routes, the others
/// end. One statement: the right to go on comes from the row that it deletes from the queue.
///
/// Parameter: $1 int8 most rows. Result: `resolved` int8, `routed` int8 (queue rows made), `orphans` int8 (rows whose
/// notification is not to be seen: a restore, worth an alarm).
enum ResolveUnroutedStatement {
    static let statement = PostgresStatement("resolve_unrouted", text, parameterTypes: [.int8])

    static let text = """
        WITH candidate AS MATERIALIZED (
            SELECT ctid AS tid
            FROM postbell.queue
            WHERE route_no = 0 AND due_at <= now()
            ORDER BY due_at
            LIMIT $1::int8
            FOR UPDATE SKIP LOCKED
        ),
        gone AS (
            DELETE FROM postbell.queue
            WHERE ctid = ANY (ARRAY(SELECT tid FROM candidate))
            RETURNING notification_id, tenant_no, urgency
        ),
        judged AS MATERIALIZED (
            -- the same order as in the claim: over, facts against it, expired, then its devices
            SELECT
                g.notification_id, g.tenant_no, g.urgency,
                n.id IS NULL AS orphan,
                n.planned_at,
                CASE
                    WHEN n.id IS NULL OR EXISTS (
                        SELECT 1 FROM postbell.settlements w
                        WHERE w.notification_id = g.notification_id AND w.route_no IS NULL)
                        THEN 'closed'
                    \(ClosingFacts.reasons)
                    WHEN n.expires_at <= now() THEN 'expired'
                    ELSE 'send'
                END AS verdict,
                ARRAY(
                    SELECT DISTINCT d.route_no
                    FROM postbell.devices d
                    WHERE d.tenant_id = n.tenant_id
                        AND d.principal_id = n.principal_id
                        AND d.token IS NOT NULL
                        AND d.status = 'active'
                        AND (n.device_no IS NULL OR d.device_no = n.device_no)
                        AND (n.except_device_no IS NULL OR d.device_no <> n.except_device_no)
                        AND (k.apps IS NULL OR d.app = ANY (k.apps))) AS routes
            FROM gone g
            LEFT JOIN postbell.outbox n ON n.id = g.notification_id
            LEFT JOIN postbell.kinds k ON k.kind_no = n.kind_no
        ),
        routed AS (
            INSERT INTO postbell.queue (due_at, notification_id, tenant_no, route_no, urgency)
            SELECT least(j.planned_at, now()), j.notification_id, j.tenant_no, r.route_no, j.urgency
            FROM judged j
            CROSS JOIN LATERAL unnest(j.routes) r(route_no)
            WHERE j.verdict = 'send'
            ORDER BY j.notification_id
            ON CONFLICT DO NOTHING
            RETURNING route_no
        ),
        ended AS (
            INSERT INTO postbell.settlements (notification_id, tenant_no, route_no, status, reason)
            SELECT
                j.notification_id,
                j.tenant_no,
                CASE WHEN j.verdict IN ('expired', 'send') THEN 0 END,
                CASE j.verdict
                    WHEN 'send' THEN 'dispatched'
                    WHEN 'erased' THEN 'cancelled'
                    WHEN 'seen' THEN 'superseded'
                    ELSE j.verdict
                END,
                CASE j.verdict WHEN 'send' THEN 'no_device' ELSE j.verdict END
            FROM judged j
            WHERE j.verdict IN ('superseded', 'seen', 'erased', 'expired')
                OR (j.verdict = 'send' AND j.routes = '{}')
            ORDER BY j.notification_id
            RETURNING 1
        )
        SELECT
            (SELECT count(*) FROM judged) AS resolved,
            (SELECT count(*) FROM routed) AS routed,
            (SELECT count(*) FROM judged WHERE orphan) AS orphans,
            -- other workers may serve those routes
            postbell.wake((SELECT array_agg(DISTINCT route_no) FROM routed)) IS NULL AS woken
        """

    static func command(limit: Int) -> PostgresCommand {
        var parameters = PostgresParameters()
        parameters.append(Int64(limit))
        return PostgresCommand(statement, parameters)
    }
}
