"""Urgent rows come faster than a worker may send: bulk rows of the same route keep their share all the time."""

import threading
import time

import psycopg

from fairness import PART, SHARE, judge_share
from stand import Stand, accepts, one, say, wait_until

# 40 requests at a time that take 100 ms each: 400 a second at most, whatever the machine.
SCENARIO, SETTINGS, MOST = ["apns delay 100ms"], {"POSTBELL_CONCURRENCY": "40"}, 400
PEOPLE = 500
# Rows that come in a second: more than twice the share of each.
FLOOD = {"urgent": 600, "bulk": 200}
HEAD_START, STRETCH = 5, 10  # seconds
MINUTES = 3
CONFIGURED = 20  # percent of a claim, `DispatchSettings.bulkShare`
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, urgency, payload)
SELECT 'p-' || (1 + g %% %(people)s), 'fault', %(urgency)s || '-' || g, %(urgency)s,
    '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(%(first)s::int, %(last)s::int) g
"""
SERVED = """
SELECT count(*) FILTER (WHERE o.urgency <> 'bulk'), count(*) FILTER (WHERE o.urgency = 'bulk')
FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
WHERE d.attempted_at >= to_timestamp(%(begin)s) AND d.attempted_at < to_timestamp(%(end)s)
"""
WAITING = "SELECT count(*) FILTER (WHERE urgency = 0), count(*) FILTER (WHERE urgency = 1) FROM postbell.queue"


def run(options):
    seconds = 60 * min(MINUTES, options.minutes)
    with Stand(options, "bulk-share", SCENARIO) as stand:
        stand.register(PEOPLE)
        stand.start_fake()
        ended, least = threading.Event(), []
        producer = threading.Thread(target=produce, args=(stand.connection(), ended))
        producer.start()
        try:
            wait_until("rows of both wait", lambda: min(waiting(stand)) > MOST / 2, 60)
            with stand.worker(**SETTINGS):
                wait_until("the worker is at work", lambda: one(
                    stand.watcher, "SELECT count(*) FROM postbell.deliveries") > 0, 60)
                time.sleep(HEAD_START)
                began = time.time()
                while time.time() < began + seconds:
                    stand.lives()
                    least.append(min(waiting(stand)))
                    time.sleep(1)
        finally:
            ended.set()
            producer.join()
        parts = [served(stand, began + at, began + at + STRETCH) for at in range(0, seconds, STRETCH)]
        twice = sum(count > 1 for count in accepts(stand.requests()).values())
        return report(parts, seconds, min(least), twice)


def report(parts, seconds, least, twice):
    urgent, bulk = (sum(part[index] for part in parts) for index in (0, 1))
    shares = [100 * part[1] / max(1, sum(part)) for part in parts]
    faults = judge_share(parts, CONFIGURED)
    if not least:
        faults.append("rows of one kind had run out: nothing was to be shared")
    if twice:
        faults.append(f"{twice} were accepted more than once")
    share = 100 * bulk / max(1, urgent + bulk)
    return say("bulk-share", f"{FLOOD['urgent']} urgent and {FLOOD['bulk']} bulk rows a second for {seconds} s to a "
               f"lane that takes {MOST}; sent {urgent / seconds:.0f} urgent and {bulk / seconds:.0f} bulk a second; "
               f"share of bulk {share:.2f} % (set to {CONFIGURED} %, within {SHARE:g} points), in {len(parts)} "
               f"stretches of {STRETCH} s {min(shares):.1f} to {max(shares):.1f} % (within {PART:g} points); at least "
               f"{least} rows of each waited all along", faults)


def produce(connection, ended):
    """Both at their rates, ten times a second."""
    began, turn = time.monotonic(), 0
    with psycopg.connect(connection, autocommit=True) as session:
        while not ended.is_set():
            for urgency, rate in FLOOD.items():
                step = rate // 10
                session.execute(ENQUEUE, {"people": PEOPLE, "urgency": urgency, "first": 1 + turn * step,
                                          "last": (turn + 1) * step})
            turn += 1
            ended.wait(max(0.0, began + turn / 10 - time.monotonic()))


def waiting(stand):
    return stand.watcher.execute(WAITING).fetchone()


def served(stand, begin, end):
    return stand.watcher.execute(SERVED, {"begin": begin, "end": end}).fetchone()
