import OutboxCore
import Postgres

/// What `postbell status` asks. All of it is about the present: the queue is counted whole, the rest is small, and the
/// ledger is read for its last minute alone.
enum StatusStatements {
    /// Parameter: $1 interval stuck-after time.
    static let queue = PostgresStatement(
        "status_queue",
        """
        SELECT
            \(routeName("q")) AS route,
            CASE q.urgency WHEN 0 THEN 'urgent' ELSE 'bulk' END AS urgency,
            count(*) AS waiting,
            count(*) FILTER (WHERE q.due_at <= now()) AS due,
            min(q.due_at) FILTER (WHERE q.due_at <= now()) AS oldest_due_at,
            count(*) FILTER (WHERE q.due_at <= now() - $1::interval) AS overdue,
            count(*) FILTER (WHERE q.crashes > 0) AS crashed
        FROM postbell.queue q
        GROUP BY q.route_no, q.urgency
        ORDER BY q.route_no, q.urgency
        """, parameterTypes: [.interval])

    static let routes = PostgresStatement(
        "status_routes",
        """
        SELECT route, provider, environment, app, workers, state, lane, reason, since, until
        FROM postbell.route_service
        ORDER BY route_no
        """)

    /// Parameter: $1 interval grace of a lapsed lease.
    static let flight = PostgresStatement(
        "status_flight",
        """
        SELECT
            \(routeName("l")) AS route,
            count(DISTINCT l.batch) AS leases,
            count(*) FILTER (WHERE l.is_open) AS rows,
            count(DISTINCT l.batch) FILTER (WHERE l.until < now() - $1::interval) AS lapsed,
            min(l.until) FILTER (WHERE l.until < now() - $1::interval) AS lapsed_at
        FROM postbell.lease_positions l
        GROUP BY l.route_no
        ORDER BY l.route_no
        """, parameterTypes: [.interval])

    /// Live workers, and those that ended within a day; the registry keeps all.
    static let workers = PostgresStatement(
        "status_workers",
        """
        SELECT
            w.name, w.version, w.state, w.started_at, w.heartbeat_at, w.stopped_at, cardinality(w.routes) AS routes,
            (SELECT count(*) FROM postbell.lease_positions l WHERE l.owner = w.owner AND l.is_open) AS leased
        FROM postbell.worker_health w
        WHERE w.state = 'alive' OR w.heartbeat_at > now() - interval '1 day'
        ORDER BY w.state <> 'alive', w.heartbeat_at DESC
        LIMIT 200
        """)

    static let lanes = PostgresStatement(
        "status_lanes",
        """
        SELECT
            h.lane, h.worker,
            (
                SELECT string_agg(concat_ws('/', r.provider, r.environment, r.app), ', ' ORDER BY r.route_no)
                FROM postbell.routes r
                WHERE r.route_no = ANY (h.routes)
            ) AS routes,
            h.state, h.reason, h.since, h.until
        FROM postbell.lane_health h
        ORDER BY h.lane, h.worker
        """)

    static let hooks = PostgresStatement(
        "status_hooks",
        """
        SELECT h.kind, h.worker, h.reason, h.since, h.until
        FROM postbell.hook_health h
        ORDER BY h.kind, h.worker
        """)

    static let outcomes = PostgresStatement(
        "status_outcomes",
        """
        SELECT postbell.outcome_name(d.outcome) AS outcome, count(*) AS attempts
        FROM postbell.deliveries d
        WHERE d.id >= postbell.uuid_floor(now() - interval '1 minute')
        GROUP BY d.outcome
        ORDER BY attempts DESC, d.outcome
        """)

    /// Of the newest thousand accepted: a look-up of its notification each.
    static let latency = PostgresStatement(
        "status_latency",
        """
        SELECT
            (percentile_disc(0.5) WITHIN GROUP (ORDER BY x.us))::int8 AS median,
            (percentile_disc(0.99) WITHIN GROUP (ORDER BY x.us))::int8 AS percentile_99
        FROM (
            SELECT
                (extract(epoch FROM d.attempted_at - o.planned_at) * 1000000)::int8 + coalesce(d.answer_us, 0) AS us
            FROM (
                SELECT d.notification_id, d.attempted_at, d.answer_us
                FROM postbell.deliveries d
                WHERE d.id >= postbell.uuid_floor(now() - interval '1 minute') AND d.outcome = 0
                ORDER BY d.id DESC
                LIMIT 1000
            ) d
            JOIN postbell.outbox o ON o.id = d.notification_id
        ) x
        """)

    /// A route's name by its number in a table; the number where the registry has lost it.
    private static func routeName(_ table: String) -> String {
        """
        coalesce(
                (SELECT s.route FROM postbell.route_service s WHERE s.route_no = \(table).route_no),
                \(table).route_no::text)
        """
    }
}
