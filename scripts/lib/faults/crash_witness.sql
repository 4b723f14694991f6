-- What the crash matrix puts into its own databases: a record of every lease, and of what must never happen to one.
CREATE SCHEMA witness;

CREATE TABLE witness.leases (
    batch      uuid        PRIMARY KEY,
    owner      uuid        NOT NULL,
    claimed_at timestamptz NOT NULL,
    until      timestamptz NOT NULL,
    ended_at   timestamptz,
    targets    uuid[]      NOT NULL,
    devices    bigint[]    NOT NULL
);

CREATE TABLE witness.violations (at timestamptz NOT NULL DEFAULT clock_timestamp(), what text NOT NULL);

CREATE FUNCTION witness.lease_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE witness.leases w SET ended_at = clock_timestamp() WHERE w.batch = OLD.batch;
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        UPDATE witness.leases w SET until = NEW.until WHERE w.batch = NEW.batch;
        RETURN NULL;
    END IF;
    INSERT INTO witness.leases (batch, owner, claimed_at, until, targets, devices)
    SELECT NEW.batch, NEW.owner, clock_timestamp(), NEW.until,
        ARRAY(SELECT NEW.ids[t.pos] FROM unnest(NEW.t_pos) WITH ORDINALITY t(pos, turn) ORDER BY t.turn), NEW.t_dev;
    INSERT INTO witness.violations (what)
    SELECT 'two leases hold ' || u.id
    FROM postbell.leases l, unnest(l.ids) WITH ORDINALITY u(id, pos)
    WHERE l.batch <> NEW.batch AND l.route_no = NEW.route_no AND get_bit(l.open, (u.pos - 1)::int) = 1
        AND u.id = ANY (NEW.ids);
    INSERT INTO witness.violations (what)
    SELECT 'claimed again after its end: ' || again
    FROM unnest(string_to_array(nullif(current_setting('witness.again', true), ''), ';')) again;
    RETURN NULL;
END
$$;

-- Stable, so that it sees what the claim itself has seen: an end that is committed meanwhile is no news for the claim.
CREATE FUNCTION witness.lease_made() RETURNS trigger
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM set_config('witness.again', coalesce((
        SELECT string_agg(d.notification_id || ', device ' || d.device_no, ';')
        FROM unnest(NEW.t_pos, NEW.t_dev) t(pos, dev)
        JOIN postbell.deliveries d ON d.notification_id = NEW.ids[t.pos] AND d.device_no = t.dev AND d.final), ''), false);
    RETURN NULL;
END
$$;

-- Triggers of one table fire in the order of their names.
CREATE TRIGGER before_witness AFTER INSERT ON postbell.leases
FOR EACH ROW EXECUTE FUNCTION witness.lease_made();
CREATE TRIGGER witness AFTER INSERT OR UPDATE OR DELETE ON postbell.leases
FOR EACH ROW EXECUTE FUNCTION witness.lease_changed();

-- The ledger is only ever added to, and what comes after the end of its lease is marked as late. A recovery ends the
-- lease and writes its own rows, in a subtransaction, whose number is another.
CREATE FUNCTION witness.ledger_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO witness.violations (what)
        SELECT 'a ledger row after its lease that is not late: ' || NEW.notification_id
        FROM witness.leases w
        WHERE w.batch = NEW.batch AND NOT NEW.late AND NEW.reason IS DISTINCT FROM 'lease_lost'
            AND w.ended_at IS NOT NULL AND w.xmin <> pg_current_xact_id()::xid;
        RETURN NULL;
    END IF;
    INSERT INTO witness.violations (what) VALUES ('a ledger row was changed: ' || OLD.notification_id);
    RETURN NULL;
END
$$;

CREATE TRIGGER witness AFTER INSERT OR UPDATE OR DELETE ON postbell.deliveries
FOR EACH ROW EXECUTE FUNCTION witness.ledger_changed();
