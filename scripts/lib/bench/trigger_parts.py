"""What the parts of enqueueing cost: each is left out of a private copy of the triggers in turn."""

import re
from contextlib import contextmanager

from producing import PRINCIPALS
from sides import spent

WARM_ROWS = 50  # what was compiled anew is not counted
LOOKUP, AFTER = "outbox_defaults", "outbox_enqueue"
# For each part the function it stands in, the text that is it, and what a row has in its place.
CUTS = {
    "payload validation": (
        LOOKUP, r"\n    IF presentation = 'raw' OR NOT postbell\.payload_fits.*?END IF;\n    END IF;", ""),
    "ids validation": (LOOKUP, r"\n    IF NOT coalesce\(postbell\.is_name\(NEW\.principal_id.*?\n    END IF;", ""),
    "device look-up": (LOOKUP, r"ARRAY\(\s*SELECT DISTINCT d\.route_no[^()]*\),", "'{{{route}}}'::smallint[],"),
    "tenant look-up": (LOOKUP, r"\(SELECT t\.tenant_no FROM [^()]*\)", "{tenant}"),
    "confinement": (LOOKUP, r"EXISTS \(SELECT 1 FROM postbell\.role_tenants [^()]*\)", "false"),
    "wake-up probe": (AFTER, r"\n    PERFORM postbell\.wake\(woken\);", ""),
}
# The same for what is no text of a trigger: how it is left out, and how it comes back.
SWITCHES = {
    "row security": ("ALTER TABLE postbell.outbox DISABLE ROW LEVEL SECURITY",
                     "ALTER TABLE postbell.outbox ENABLE ROW LEVEL SECURITY"),
    "dedupe key": ("ALTER TABLE postbell.outbox DROP CONSTRAINT outbox_tenant_id_dedupe_key_key",
                   "ALTER TABLE postbell.outbox ADD UNIQUE (tenant_id, dedupe_key)"),
}
PARTS = [*CUTS, *SWITCHES]


@contextmanager
def without(database, part):
    """While this lasts, rows are enqueued without the part."""
    run = database.admin.execute
    if part in SWITCHES:
        leave, restore = SWITCHES[part]
    else:
        function, pattern, replacement = CUTS[part]
        restore = run(f"SELECT pg_get_functiondef('postbell.{function}'::regproc)").fetchone()[0]
        filled = replacement.format(**database.constants)
        leave, found = re.subn(pattern, lambda _: filled, restore, flags=re.DOTALL)
        if found != 1:
            raise ValueError(f"{function} has {found} places that look like its {part}")
    run(leave)
    try:
        yield
    finally:
        database.empty()
        run(restore)


def loop(statement, first, rows, constants):
    """Single rows, a transaction each, without a client in between."""
    filled = statement.format(person=f"(1 + n % {PRINCIPALS})", key="hashint8extended(n, 0)", **constants)
    return f"DO $bench$ BEGIN FOR n IN {first}..{first + rows - 1} LOOP {filled}; COMMIT; END LOOP; END $bench$"


def cost(database, statement, rows):
    """Backend CPU per row, in microseconds, of rows that a session inserts one by one."""
    database.empty()
    database.producer.execute(loop(statement, 1, WARM_ROWS, database.constants))
    before = spent(database.producer)
    database.producer.execute(loop(statement, WARM_ROWS + 1, rows, database.constants))
    return (spent(database.producer) - before) / rows
