// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// 0020_ledger_days.sql
    static let ledgerdays0020 = Migration(
        version: 20, name: "ledger_days",
        checksum: "3aa1e98a9c2a68ef567d1881cd921bca3f5f4402ec03761e1c0854e1790cce0a",
        sql: #"""
-- Postbell 0020: the days of the ledger go as a whole.
--
-- Locks: none on existing tables. The function that it makes takes ACCESS EXCLUSIVE on deliveries for a moment when it
-- drops a day, and only when nobody is in the way.
-- Older workers: may run on; they drop nothing.
-- Runs in one transaction that the caller opens.

SET LOCAL ROLE postbell_owner;

-- Drops the oldest day of the ledger that was kept long enough and that no notification has a row in which is still
-- there, so none that is open; answers which, or null when there was none or somebody was in the way. DETACH
-- CONCURRENTLY does not go with a default partition, so its locks are tried and never waited for: nobody queues behind
-- this, and the caller comes again.
CREATE FUNCTION postbell.drop_ledger_day() RETURNS date
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cutoff    timestamptz;
    leaf      record;
    is_needed boolean;
BEGIN
    PERFORM postbell.refuse_confined();
    SELECT clock_timestamp() - p.keep INTO cutoff FROM postbell.retention p WHERE p.table_name = 'deliveries';
    IF cutoff IS NULL OR NOT pg_try_advisory_xact_lock(postbell.awake_class(), -1) THEN
        RETURN NULL;  -- kept for ever, or another session makes or drops days
    END IF;
    FOR leaf IN
        SELECT d.name, d.day, (d.day + 1)::timestamp AT TIME ZONE 'UTC' AS ends_at
        FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid
        CROSS JOIN LATERAL (
            SELECT c.relname AS name, to_date(substring(c.relname FROM '^deliveries_([0-9]{8})$'), 'YYYYMMDD') AS day
        ) d
        WHERE i.inhparent = 'postbell.deliveries'::regclass
            AND (d.day + 1)::timestamp AT TIME ZONE 'UTC' <= cutoff
        ORDER BY d.day
    LOOP
        -- the hour is for ids of another clock than that of the notification
        EXECUTE format(
            'SELECT EXISTS (
                SELECT 1 FROM postbell.outbox o
                WHERE o.id < $1 AND EXISTS (SELECT 1 FROM postbell.%I d WHERE d.notification_id = o.id))',
            leaf.name)
        INTO is_needed
        USING postbell.uuid_floor(leaf.ends_at + interval '1 hour');
        CONTINUE WHEN is_needed;
        BEGIN
            LOCK TABLE ONLY postbell.deliveries IN ACCESS EXCLUSIVE MODE NOWAIT;
            LOCK TABLE ONLY postbell.deliveries_default IN ACCESS EXCLUSIVE MODE NOWAIT;
            EXECUTE format('LOCK TABLE ONLY postbell.%I IN ACCESS EXCLUSIVE MODE NOWAIT', leaf.name);
        EXCEPTION WHEN lock_not_available THEN
            RETURN NULL;
        END;
        EXECUTE format('ALTER TABLE postbell.deliveries DETACH PARTITION postbell.%I', leaf.name);
        EXECUTE format('DROP TABLE postbell.%I', leaf.name);
        UPDATE postbell.retention p SET removed_before = greatest(p.removed_before, leaf.ends_at)
        WHERE p.table_name = 'deliveries';
        RETURN leaf.day;
    END LOOP;
    RETURN NULL;
END
$$;

REVOKE ALL ON FUNCTION postbell.drop_ledger_day() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION postbell.drop_ledger_day() TO postbell_dispatcher, postbell_operator;

RESET ROLE;
"""#)
}
