#!/usr/bin/env python3
"""Memory of a worker with a million rows queued and 1,000 requests in flight all the time.

    memory.py --worker FILE --database CONNECTION --log FILE [--rows N] [--rounds N] [--seconds N]

The fake provider takes a second for each answer, so 1,000 answers a second are 1,000 requests in flight. What counts is
the most the process ever held (VmHWM).
"""

import argparse
import time

import psycopg

from measure import Limits, progress, resident_megabytes, table
from worker import BACKENDS, Worker, one, wait_until

LIMIT = 40  # MiB
IN_FLIGHT = 1000
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT 'person-' || (1 + g %% %(devices)s), 'bench', 'memory:' || g, 'run:' || g,
       '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(%(first)s::int, %(last)s::int) g
"""
LEDGER = "SELECT count(*) FROM postbell.deliveries"


def fill(producer, options):
    for first in range(1, options.rows + 1, 50_000):
        last = min(first + 49_999, options.rows)
        producer.execute(ENQUEUE, {"devices": options.devices, "first": first, "last": last})
    producer.execute("VACUUM (ANALYZE)")


def measured_round(options, watcher):
    """Most memory, memory at the end, and answers per second."""
    with Worker(options.worker, options.log, POSTBELL_CONCURRENCY=str(IN_FLIGHT)) as worker:
        wait_until("the worker connects", lambda: worker.pid and watcher.execute(BACKENDS).fetchall(), 30)
        before = one(watcher, LEDGER)
        wait_until("the first answers", lambda: worker.pid and one(watcher, LEDGER) > before, 30)
        before, started = one(watcher, LEDGER), time.monotonic()
        time.sleep(options.seconds)
        rate = (one(watcher, LEDGER) - before) / (time.monotonic() - started)
        now, most = resident_megabytes(worker.pid)
    return most, now, rate


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("worker", "database", "log"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--devices", type=int, default=1000)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=10)
    options = arguments.parse_args()
    limits, rows = Limits(), []
    with psycopg.connect(options.database, autocommit=True) as watcher:
        fill(watcher, options)
        progress("the queue is filled")
        for number in range(options.rounds):
            queued = one(watcher, "SELECT count(*) FROM postbell.queue")
            most, now, rate = measured_round(options, watcher)
            name = f"round {number + 1}"
            rows.append([name, queued, f"{rate:.0f}", f"{most:.1f}", limits.most(f"memory, {name}", most, LIMIT),
                         f"{now:.1f}"])
            progress(f"{name} of {options.rounds}")
    print("\nMemory of the worker, answers take 1 s each\n")
    table(["round", "rows queued", "answers/s = in flight", "most RSS, MiB", "limit, MiB", "RSS at the end, MiB"], rows)
    limits.finish()


main()
