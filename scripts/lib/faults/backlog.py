"""Hours of work that nobody did, most of which nobody wants any more, and people who go on producing."""

import threading
import time

import psycopg

from stand import Stand, accepts, say, wait_until

PEOPLE = 200
EXPIRED, SUPERSEDED, WANTED = 40_000, 10_000, 10_000
RATE = 100   # rows that arrive in a second while the rest is worked off
DRAIN = 3    # times as many have to leave
FILL = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload, expires_at)
SELECT 'p-' || (1 + g %% %(people)s), 'fault', %(name)s || '-' || g, %(subject)s,
    '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}',
    clock_timestamp() + %(life)s::interval
FROM generate_series(1, %(count)s) g
"""


def backlog(options):
    """What is stale ends without a request, what is wanted is sent, and all of it faster than new rows arrive. These
    wait behind it, for the oldest of a tenant goes first."""
    with Stand(options, "backlog", ["apns delay 20ms"]) as stand:
        stand.register(PEOPLE)
        for name, count, subject, life in (("stale", EXPIRED, None, "2 s"), ("over", SUPERSEDED, "s", "1 h"),
                                           ("wanted", WANTED, None, "1 h")):
            stand.watcher.execute(FILL, {"people": PEOPLE, "name": name, "count": count, "subject": subject,
                                         "life": life})
        stand.watcher.execute("SELECT postbell.supersede('default', 's')")
        stand.watcher.execute("VACUUM ANALYZE")  # hours would have seen one
        time.sleep(2)  # for the deadlines
        stand.start_fake()
        load = Arrivals(stand)
        with stand.worker(), stand.worker():
            began = time.monotonic()
            load.start()
            wait_until("the backlog is worked off", lambda: stand.lives() and not left(stand), 300)
            seconds = time.monotonic() - began
            load.end()
            waiting = stand.wait_until_settled(60)
        return judge(stand, load, seconds, waiting)


def left(stand):
    return stand.watcher.execute(
        """SELECT EXISTS (SELECT FROM postbell.places p JOIN postbell.outbox o ON o.id = p.notification_id
           WHERE o.dedupe_key !~ '^fresh')""").fetchone()[0]


class Arrivals(threading.Thread):
    """Producers that go on."""

    def __init__(self, stand):
        super().__init__(daemon=True)
        self.connection, self.ended, self.count = stand.connection(), threading.Event(), 0

    def run(self):
        with psycopg.connect(self.connection, autocommit=True) as session:
            while not self.ended.wait(0.1):
                session.execute(FILL, {"people": PEOPLE, "name": f"fresh-{self.count}", "count": RATE // 10,
                                       "subject": None, "life": "1 h"})
                self.count += RATE // 10

    def end(self):
        self.ended.set()
        self.join(10)


def judge(stand, load, seconds, waiting):
    faults = [f"{waiting} rows still wait"] if waiting else []
    statuses = stand.statuses()
    expected = {"expired": EXPIRED, "superseded": SUPERSEDED, "dispatched": WANTED + load.count}
    if statuses != expected:
        faults.append(f"ended as {statuses}, not as {expected}")
    accepted = accepts(stand.requests())
    names = dict(stand.watcher.execute("SELECT id::text, dedupe_key FROM postbell.outbox").fetchall())
    stale = sum(names.get(name, "").startswith(("stale", "over")) for name in accepted)
    if stale:
        faults.append(f"{stale} stale pushes were sent")
    if len(accepted) != WANTED + load.count or any(count != 1 for count in accepted.values()):
        faults.append(f"{len(accepted)} were accepted, {sum(count > 1 for count in accepted.values())} more than once")
    faults += [f"audit: {fault} {detail}" for fault, detail in
               stand.watcher.execute("SELECT fault, detail FROM postbell.audit()").fetchall()]
    rate = (EXPIRED + SUPERSEDED + WANTED + load.count) / seconds
    if rate < DRAIN * load.count / seconds:
        faults.append("it is not worked off three times as fast as new rows arrive")
    waits = delays(stand)
    median = waits[len(waits) // 2] if waits else 0
    longest = waits[-1] if waits else 0
    return say(stand.name, f"expired {EXPIRED}, superseded {SUPERSEDED}, wanted {WANTED}, arrived meanwhile "
               f"{load.count}, stale sent {stale}, accepted {len(accepted)}, worked off in {seconds:.1f} s, {rate:.0f} "
               f"rows a second with {load.count / seconds:.0f} arriving (at least {DRAIN} times), a new row waited "
               f"{median:.2f} s in the median and {longest:.2f} s at most", faults)


def delays(stand):
    """Seconds from the insert of a new row to its request, ascending."""
    return [float(row[0]) for row in stand.watcher.execute(
        """SELECT extract(epoch FROM d.attempted_at - o.created_at) FROM postbell.outbox o
           JOIN postbell.deliveries d ON d.notification_id = o.id
           WHERE o.dedupe_key ~ '^fresh' ORDER BY 1""")]
