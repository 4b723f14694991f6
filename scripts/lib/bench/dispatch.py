#!/usr/bin/env python3
"""Rows enqueued until all are settled: CPU per push of the worker and of its PostgreSQL backends, pushes/s, memory;
beside them what h2load spends per request against nghttpd at URL.

    dispatch.py --worker FILE --database CONNECTION --url URL --log FILE [--rows N] [--rounds N] [--streams 100,1000]

The worker is up and idle before a round's rows are committed by a session of its own, so neither its start nor the
producers' work is counted. CONNECTION belongs to a superuser of a private server; the worker's environment is ours.
"""

import argparse
import os
import signal
import subprocess
import sys
import time

import psycopg

from h2load import h2load
from measure import cpu_seconds, median, progress, resident_megabytes, spread, table

ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT 'person-' || g, 'bench', %(round)s || ':' || g, 'run:' || g,
       '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(1, %(rows)s) g
"""
DONE = "SELECT NOT EXISTS (SELECT FROM postbell.queue) AND NOT EXISTS (SELECT FROM postbell.leases)"
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE usename = 'bench_worker'"
WAL = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8"


class Worker:
    """A running `postbell dispatch` at one level of concurrency."""

    def __init__(self, options, streams):
        environment = dict(os.environ, POSTBELL_CONCURRENCY=str(streams), SWIFT_BACKTRACE="enable=no")
        self.log = open(options.log, "ab")
        self.process = subprocess.Popen([options.worker, "dispatch"], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT, env=environment)

    @property
    def pid(self):
        if self.process.poll() is not None:
            sys.exit(f"the worker ended with status {self.process.returncode}; see {self.log.name}")
        return self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            sys.exit("the worker did not stop within 30 s of SIGTERM")
        self.log.close()


def wait_until(what, condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def one(connection, query):
    return connection.execute(query).fetchone()[0]


def measured_round(options, watcher, worker, name):
    """CPU seconds of worker and backends, wall-clock seconds and WAL bytes from the commit to the last settle."""
    def backends():
        return {row[0]: cpu_seconds(row[0]) for row in watcher.execute(BACKENDS)}

    with psycopg.connect(options.database) as producer:
        producer.execute(ENQUEUE, {"round": name, "rows": options.rows})
        before, worker_before, wal = backends(), cpu_seconds(worker.pid), one(watcher, WAL)
        producer.commit()
        started = time.monotonic()
    wait_until("all rows settled", lambda: worker.pid and one(watcher, DONE), 180)
    seconds = time.monotonic() - started
    spent = sum(cpu - before.get(pid, 0) for pid, cpu in backends().items())
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
                worker = Worker(options, level)
                try:
                    wait_until("the worker connects", lambda: worker.pid and watcher.execute(BACKENDS).fetchall(), 30)
                    time.sleep(2)  # its connections to database and provider settle; not part of what is measured
                    result = measured_round(options, watcher, worker, f"{number}.{level}")
                finally:
                    worker.stop()
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

    print(f"\nDispatch, {options.rows} rows with one device each, "
          f"median of {options.rounds} rounds (smallest–largest)\n")
    table(["streams", "worker CPU µs/push", "h2load CPU µs/request", "worker / h2load", "backends CPU µs/push",
           "pushes/s", "WAL bytes/push", "worker RSS MB"], [
        [level, per_push(level, "worker"), per_push(level, "h2load"),
         spread([result["worker"] / result["h2load"] for result in results[level]]), per_push(level, "backends"),
         f"{median([options.rows / result['seconds'] for result in results[level]]):.0f}",
         f"{median([result['wal'] / options.rows for result in results[level]]):.0f}",
         f"{median([result['resident'] for result in results[level]]):.0f}"]
        for level in levels])
    print(f"\nLedger rows other than delivered: {others}; findings of postbell.audit(): {faults}")


main()
