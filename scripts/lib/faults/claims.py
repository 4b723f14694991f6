"""Which claims a worker made, in the order in which it made them: what fairness is counted in."""

# A worker claims on one session, one claim after the other, so the instants at which the claims began are their order.
WITNESS = """
CREATE SCHEMA witness;
CREATE TABLE witness.claims (
    batch uuid PRIMARY KEY, claimed_at timestamptz NOT NULL, rows int NOT NULL, targets int NOT NULL);
CREATE FUNCTION witness.claimed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO witness.claims
    VALUES (NEW.batch, NEW.claimed_at, pg_catalog.cardinality(NEW.ids), pg_catalog.cardinality(NEW.t_dev));
    RETURN NULL;
END
$$;
CREATE TRIGGER witness AFTER INSERT ON postbell.leases FOR EACH ROW EXECUTE FUNCTION witness.claimed();
"""
ALL = "SELECT extract(epoch FROM claimed_at)::float8, batch::text FROM witness.claims ORDER BY claimed_at"


class Claims:
    """All claims so far."""

    def __init__(self, session):
        found = session.execute(ALL).fetchall()
        self.instants = [instant for instant, _ in found]
        self.number = {batch: number for number, (_, batch) in enumerate(found)}

    def since(self, committed, batch):
        """The how manieth claim this one is of those that began after an instant; 0 for one that had begun before, and
        saw what was committed while it did."""
        number = self.number[batch]
        return number + 1 - sum(instant <= committed for instant in self.instants[:number + 1])
