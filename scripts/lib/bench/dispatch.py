#!/usr/bin/env python3
"""Rows enqueued until all are settled: CPU per push of the worker and of its PostgreSQL backends, pushes/s, memory;
beside them what h2load spends per request against nghttpd at URL.

    dispatch.py --worker FILE --database CONNECTION --url URL --log FILE [--rows N] [--rounds N] [--streams 100,1000]

The worker is up and idle before a round's rows are committed by a session of its own, so neither its start nor the
producers' work is counted. CONNECTION belongs to a superuser of a private server; the worker's environment is ours.
"""

import argparse
import time

import psycopg

from h2load import h2load
from measure import Limits, cpu_seconds, median, progress, resident_megabytes, spread, table
from worker import DONE, Worker, backend_seconds, one, wait_until

ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT 'person-' || g, 'bench', %(round)s || ':' || g, 'run:' || g,
       '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(1, %(rows)s) g
"""
LIMIT = 3.5  # of h2load's CPU per request, for everything a worker does
WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"


def measured_round(options, watcher, worker, name):
    """CPU seconds of worker and backends, wall-clock seconds and WAL bytes from the commit to the last settle."""
    with psycopg.connect(options.database) as producer:
        producer.execute(ENQUEUE, {"round": name, "rows": options.rows})
        before, worker_before, wal = backend_seconds(watcher), cpu_seconds(worker.pid), one(watcher, WAL)
        producer.commit()
        started = time.monotonic()
    wait_until("all rows settled", lambda: worker.pid and one(watcher, DONE), 180)
    seconds = time.monotonic() - started
    spent = sum(cpu - before.get(pid, 0) for pid, cpu in backend_seconds(watcher).items())
    return {"worker": cpu_seconds(worker.pid) - worker_before, "backends": spent, "seconds": seconds,
            "wal": one(watcher, WAL) - wal, "resident": resident_megabytes(worker.pid)[1]}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--worker", required=True)
    arguments.add_argument("--database", required=True)
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--log", required=True)
    arguments.add_argument("--rows", type=int, default=20_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--streams", default="100,1000")
    options = arguments.parse_args()
    levels = [int(level) for level in options.streams.split(",")]
    results = {level: [] for level in levels}
    with psycopg.connect(options.database, autocommit=True) as watcher:
        for number in range(options.rounds + 1):
            for level in levels:
                watcher.execute("VACUUM (ANALYZE)")
                watcher.execute("CHECKPOINT")
                with Worker(options.worker, options.log, POSTBELL_CONCURRENCY=str(level)) as worker:
                    worker.wait_until_idle(watcher)
                    result = measured_round(options, watcher, worker, f"{number}.{level}")
                result["h2load"] = h2load(options.url, level, options.rows).cpu
                if number > 0:
                    results[level].append(result)
            progress(f"round {number} of {options.rounds}")
        faults = one(watcher, "SELECT count(*) FROM postbell.audit()")
        others = one(watcher, "SELECT count(*) FROM postbell.ledger WHERE outcome::text <> 'delivered'")
    report(results, levels, options, faults, others)


def report(results, levels, options, faults, others):
    def per_push(level, key):
        return spread([result[key] / options.rows * 1e6 for result in results[level]])

    def ratios(level):
        return [result["worker"] / result["h2load"] for result in results[level]]

    print(f"\nDispatch, {options.rows} rows with one device each, "
          f"median of {options.rounds} rounds (smallest–largest)\n")
    limits = Limits()
    table(["streams", "worker CPU µs/push", "h2load CPU µs/request", "worker / h2load", "limit", "backends CPU µs/push",
           "pushes/s", "WAL bytes/push", "worker RSS MB"], [
        [level, per_push(level, "worker"), per_push(level, "h2load"),
         spread(ratios(level)),
         limits.most(f"worker / h2load at {level} streams", median(ratios(level)), LIMIT),
         per_push(level, "backends"),
         f"{median([options.rows / result['seconds'] for result in results[level]]):.0f}",
         f"{median([result['wal'] / options.rows for result in results[level]]):.0f}",
         f"{median([result['resident'] for result in results[level]]):.0f}"]
        for level in levels])
    print(f"\nLedger rows other than delivered: {others}; findings of postbell.audit(): {faults}")
    limits.most("ledger rows other than delivered", others, 0)
    limits.most("findings of postbell.audit()", faults, 0)
    limits.finish()


main()
