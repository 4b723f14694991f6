import Postgres

/// What `postbell show` asks, all of it by keys.
enum ShowStatements {
    /// Parameters: $1 uuid id, $2 text tenant or null. Result: `id` uuid, `tenant_id` text.
    static let byIdentifier = PostgresStatement(
        "show_by_id",
        """
        SELECT o.id, o.tenant_id
        FROM postbell.outbox o
        WHERE o.id = $1::uuid AND o.tenant_id = coalesce($2::text, o.tenant_id)
        """, parameterTypes: [.uuid, .text])

    /// Parameters: $1 text dedupe key, $2 text tenant or null. One probe per tenant: the tenant is the first column of
    /// the key.
    static let byKey = PostgresStatement(
        "show_by_key",
        """
        SELECT o.id, o.tenant_id
        FROM postbell.tenants t
        CROSS JOIN LATERAL (
            SELECT n.id, n.tenant_id
            FROM postbell.outbox n
            WHERE n.tenant_id = t.tenant_id AND n.dedupe_key = $1::text
            OFFSET 0
        ) o
        WHERE t.tenant_id = coalesce($2::text, t.tenant_id)
        ORDER BY o.tenant_id
        """, parameterTypes: [.text, .text])

    /// Parameter: $1 uuid id.
    static let head = PostgresStatement(
        "show_head",
        """
        SELECT
            n.id, n.tenant_id, n.principal_id, n.kind, n.dedupe_key, n.subject, n.thread, n.urgency,
            o.silent, o.device_id, o.except_device_id, n.created_at, n.planned_at, o.not_before, n.expires_at,
            n.status, n.reason, n.settled_at,
            (
                SELECT min(u.at)
                FROM postbell.supersessions u
                WHERE u.tenant_id = n.tenant_id AND u.subject = n.subject AND u.at > n.created_at
            ) AS superseded_at,
            EXISTS (SELECT FROM postbell.worker_health w WHERE w.state = 'alive') AS worker_is_alive
        FROM postbell.notifications n
        JOIN postbell.outbox o ON o.id = n.id
        WHERE n.id = $1::uuid
        """, parameterTypes: [.uuid])

    /// Parameter: $1 uuid id.
    static let places = PostgresStatement(
        "show_places",
        """
        SELECT
            s.route_no, s.route, s.provider, s.environment, s.app, s.workers, s.state, s.lane, s.reason, s.since,
            s.until, p.at, p.attempt, p.crashes, p.batch, p.claimed_at, w.name, w.state, w.heartbeat_at
        FROM (
            SELECT
                q.route_no, q.due_at AS at, q.attempt, q.crashes, NULL::uuid AS batch, NULL::uuid AS owner,
                NULL::timestamptz AS claimed_at
            FROM postbell.queue q
            WHERE q.notification_id = $1::uuid
            UNION ALL
            SELECT l.route_no, l.until, l.attempt, l.crashes, l.batch, l.owner, l.claimed_at
            FROM postbell.lease_positions l
            WHERE l.notification_id = $1::uuid AND l.is_open
        ) p
        JOIN postbell.route_service s ON s.route_no = p.route_no
        LEFT JOIN postbell.worker_health w ON w.owner = p.owner
        ORDER BY p.route_no
        """, parameterTypes: [.uuid])

    /// Parameter: $1 uuid id. Result: `id` uuid of each ledger row that decided about its device.
    static let deciding = PostgresStatement(
        "show_deciding", "SELECT id FROM postbell.target_ends WHERE notification_id = $1::uuid",
        parameterTypes: [.uuid])

    /// Parameter: $1 uuid id. Result: what a hook of its kind fails by; of several workers the one that asks it next.
    static let hook = PostgresStatement(
        "show_hook",
        """
        SELECT h.kind, h.worker, h.reason, h.since, h.until
        FROM postbell.outbox o
        JOIN postbell.hook_health h ON h.kind = o.kind
        WHERE o.id = $1::uuid
        ORDER BY h.until
        LIMIT 1
        """, parameterTypes: [.uuid])

    /// Parameter: $1 uuid id.
    static let ends = PostgresStatement(
        "show_ends",
        """
        SELECT s.at, r.route, s.status, s.reason
        FROM postbell.settlements s
        LEFT JOIN postbell.route_service r ON r.route_no = s.route_no
        WHERE s.notification_id = $1::uuid
        ORDER BY s.seq
        """, parameterTypes: [.uuid])
}
