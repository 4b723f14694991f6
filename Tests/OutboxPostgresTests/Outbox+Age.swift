import Postgres

@testable import OutboxPostgres

extension Outbox {
    /// Makes everything so many days older, as if it had happened then: ids, clock readings, and the days of the ledger
    /// that go with them.
    func age(days: Int) async throws {
        try await run(
            """
            CREATE OR REPLACE FUNCTION pg_temp.aged(id uuid) RETURNS uuid LANGUAGE sql AS $$
                SELECT encode(
                    int8send(('x' || left(replace(id::text, '-', ''), 16))::bit(64)::bigint
                        - (\(days) * 86400000::bigint << 16)) || substring(uuid_send(id), 9), 'hex')::uuid
            $$
            """)
        try await ledgerDays(back: 80)
        let old = "- interval '\(days) days'"
        try await run(
            """
            UPDATE postbell.outbox SET id = pg_temp.aged(id), created_at = created_at \(old),
                planned_at = planned_at \(old), expires_at = expires_at \(old);
            UPDATE postbell.queue SET notification_id = pg_temp.aged(notification_id), due_at = due_at \(old);
            UPDATE postbell.leases SET ids = ARRAY(SELECT pg_temp.aged(u) FROM unnest(ids) u);
            UPDATE postbell.settlements SET notification_id = pg_temp.aged(notification_id), at = at \(old);
            UPDATE postbell.acknowledgements SET notification_id = pg_temp.aged(notification_id);
            UPDATE postbell.deliveries SET id = pg_temp.aged(id), notification_id = pg_temp.aged(notification_id),
                attempted_at = attempted_at \(old), retry_at = retry_at \(old);
            UPDATE postbell.supersessions SET id = pg_temp.aged(id), at = at \(old);
            UPDATE postbell.erasures SET id = pg_temp.aged(id), at = at \(old);
            UPDATE postbell.receipts SET seen_at = seen_at \(old);
            UPDATE postbell.events SET id = pg_temp.aged(id), at = at \(old);
            UPDATE postbell.workers SET heartbeat_at = heartbeat_at \(old);
            UPDATE postbell.devices SET last_success_at = last_success_at \(old)
            """)
    }

    /// Days of the ledger as they would be there had the schema stood for so long.
    func ledgerDays(back days: Int) async throws {
        try await run(
            """
            SET ROLE postbell_owner;
            DO $$
            DECLARE
                day  date;
                leaf text;
            BEGIN
                FOR day IN SELECT (now() AT TIME ZONE 'UTC')::date - i FROM generate_series(2, \(days)) i LOOP
                    leaf := 'deliveries_' || to_char(day, 'YYYYMMDD');
                    CONTINUE WHEN to_regclass('postbell.' || leaf) IS NOT NULL;
                    EXECUTE format('CREATE TABLE postbell.%I (LIKE postbell.deliveries INCLUDING ALL)', leaf);
                    EXECUTE format(
                        'ALTER TABLE postbell.deliveries ATTACH PARTITION postbell.%I FOR VALUES FROM (%L) TO (%L)',
                        leaf, postbell.uuid_floor(day::timestamp AT TIME ZONE 'UTC'),
                        postbell.uuid_floor((day + 1)::timestamp AT TIME ZONE 'UTC'));
                END LOOP;
            END
            $$;
            RESET ROLE
            """)
    }

    /// Keeps notifications, and what is kept at least as long as they, for so many days.
    func keep(days: Int) async throws {
        try await run(
            """
            SELECT postbell.set_retention(t, '\(days) days')
            FROM unnest('{outbox,deliveries,events,workers,supersessions,erasures,receipts}'::text[]) t
            """)
    }

    /// The dedupe keys of what is still there.
    func kept() async throws -> [String] {
        try await texts("SELECT dedupe_key FROM postbell.outbox ORDER BY 1")
    }

    /// How many rows of a table one call removes.
    func retain(_ table: String = "outbox", limit: Int = 500) async throws -> Int {
        let removed = try await texts(
            "SELECT removed FROM postbell.retain(\(limit)) WHERE table_name = '\(table)'")
        return Int(removed.first ?? "") ?? -1
    }
}
