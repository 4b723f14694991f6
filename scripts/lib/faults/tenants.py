"""One tenant with a million rows queued: after how many claims others are served, who come while it is worked off."""

import random
import string
import time

from claims import WITNESS, Claims
from fairness import CYCLES, judge_rounds, judge_waits
from stand import Stand, one, say, wait_until

PEOPLE = 1000
OTHERS = list(string.ascii_lowercase[1:])  # tenants b to z
BACKLOGS, BACKLOG = 100, 200
LONG = "a"
# Several at once, so that a long backlog is there in no time.
ENQUEUE = """
INSERT INTO postbell.outbox (tenant_id, principal_id, kind, dedupe_key, payload)
SELECT t.name, t.name || '-' || (1 + g %% %(people)s), 'fault', %(wave)s || g,
    '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM unnest(%(tenants)s::text[]) t(name), generate_series(%(first)s::int, %(last)s::int) g
"""
# The first claim of each tenant in a wave, and how long after an instant its first push was answered.
SERVED = """
SELECT DISTINCT ON (o.tenant_id) o.tenant_id, d.batch::text,
    extract(epoch FROM d.attempted_at + coalesce(d.answer_us, 0) * interval '1 microsecond')::float8
FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
WHERE o.tenant_id = ANY (%(tenants)s) AND o.dedupe_key LIKE %(wave)s || '%%' AND d.outcome = 0
ORDER BY o.tenant_id, d.id
"""
WAITING = """
SELECT count(*) FROM postbell.queue q JOIN postbell.tenants t ON t.tenant_no = q.tenant_no
WHERE t.tenant_id = %(tenant)s
"""


def run(options):
    rows = 50 * options.rows
    with Stand(options, "tenants", []) as stand:
        stand.watcher.execute(WITNESS)
        backlogs = [f"shop{number}" for number in range(BACKLOGS)]
        stand.register_tenants({LONG: PEOPLE} | dict.fromkeys(OTHERS + backlogs, 1))
        for first in range(1, rows + 1, 50_000):
            enqueue(stand, "long", [LONG], first, min(rows, first + 49_999), PEOPLE)
        stand.watcher.execute("VACUUM (ANALYZE) postbell.queue, postbell.outbox")
        stand.start_fake()
        with stand.worker():
            began = time.monotonic()
            wait_until("the worker is at work", lambda: sent(stand) > 5000, 60)
            alone = one_by_one(stand)
            together = wave(stand, "together", OTHERS)
            beside = wave(stand, "backlog", backlogs, BACKLOG)
            with_them = one_by_one(stand, "beside")
            left, rate = stand.watcher.execute(WAITING, {"tenant": LONG}).fetchone()[0], sent(stand)
            rate /= time.monotonic() - began
        claims = one(stand.watcher, "SELECT avg(rows)::float8 FROM witness.claims")
        return report(rows, left, rate, claims, alone, together, beside, with_them)


def report(rows, left, rate, size, alone, together, beside, with_them):
    faults = [] if left else ["the long backlog had ended before the others were served"]
    for name, waits in (("one after the other", alone), ("all at once", together)):
        faults += judge_waits(name, waits, len(OTHERS))
    faults += judge_rounds("backlogs", beside, BACKLOGS, BACKLOGS + 1)
    faults += judge_rounds("beside the backlogs", with_them, len(OTHERS), BACKLOGS + 2)
    return say("tenants", f"{rows} rows of one tenant, {left} of them left, {rate:.0f} sent a second in claims of "
               f"{size:.0f} rows; {len(OTHERS)} others with a row each, one after the other: served by {told(alone)}; "
               f"all at once: by {told(together)} (at most {CYCLES} claims); {BACKLOGS} with {BACKLOG} each: first "
               f"served by {told(beside)}; beside those a row each: by {told(with_them)}", faults)


def told(waits):
    """`claim 1 (20), 2 (5), within 30 ms (median 12)`."""
    counts = {}
    for claims, _ in waits:
        counts[claims] = counts.get(claims, 0) + 1
    times = sorted(1000 * seconds for _, seconds in waits)
    if not times:
        return "none"
    return (f"claim {', '.join(f'{claims} ({count})' for claims, count in sorted(counts.items()))}, within "
            f"{times[-1]:.0f} ms (median {times[len(times) // 2]:.0f})")


def one_by_one(stand, wave_name="alone"):
    """Each at a moment of its own, so that it meets the worker wherever it happens to be."""
    draws, committed = random.Random(5), {}
    for tenant in OTHERS:
        committed[tenant] = enqueue(stand, wave_name, [tenant], 1, 1)
        time.sleep(draws.uniform(0.02, 0.2))
    return waits_of(stand, wave_name, committed)


def wave(stand, name, tenants, rows=1):
    """All of them in one transaction."""
    return waits_of(stand, name, dict.fromkeys(tenants, enqueue(stand, name, tenants, 1, rows)))


def waits_of(stand, name, committed):
    """How many claims and seconds after its commit each tenant had its first push. Those without one are missing."""
    wanted, served = {"tenants": list(committed), "wave": f"{name}-"}, []
    end = time.monotonic() + 60
    while len(served) < len(committed) and time.monotonic() < end:
        stand.lives()
        time.sleep(0.2)
        served = stand.watcher.execute(SERVED, wanted).fetchall()
    claims = Claims(stand.watcher)
    return [(claims.since(committed[tenant], batch), answered - committed[tenant])
            for tenant, batch, answered in served]


def enqueue(stand, name, tenants, first, last, people=1):
    """Commits, and answers at which time of the database that was."""
    stand.watcher.execute(ENQUEUE, {"tenants": tenants, "people": people, "wave": f"{name}-", "first": first,
                                    "last": last})
    return one(stand.watcher, "SELECT extract(epoch FROM clock_timestamp())::float8")


def sent(stand):
    return one(stand.watcher, "SELECT count(*) FROM postbell.deliveries")
