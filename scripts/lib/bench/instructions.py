#!/usr/bin/env python3
"""Instructions per push under callgrind, of this commit and of another one: they do not depend on how busy the
machine is, so a change of a few percent is seen where CPU time would need hours.

    instructions.py --worker FILE --bench FILE --theirs FOLDER --database CONNECTION --their-database CONNECTION
                    --url URL --ca FILE --log FILE [--rows FEW,MANY] [--streams N] [--rounds N]

Each program runs with few and with many pushes; the difference leaves out what its start costs. Programs run one
instruction stream at a time under callgrind, some fifty times slower: enqueued before the worker starts, the rows of
both runs are claimed in full batches.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg

from h2load import BODY_BYTES
from measure import Limits, Run, progress, table
from worker import DONE, Worker, one, wait_until

ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT 'person-' || g, 'bench', %(round)s || ':' || g, 'run:' || g,
       '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(1, %(rows)s) g
"""
LIMIT = 1.05  # of the other commit's instructions per push


def callgrind(folder):
    return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind.out", "--quiet"]


def instructions(folder):
    """What the run that left its account in `folder` executed."""
    found = re.search(r"^(?:summary|totals): (\d+)", Path(folder, "callgrind.out").read_text(), re.MULTILINE)
    return int(found[1]) if found else sys.exit("callgrind left no account")


def client_run(program, options, requests):
    with tempfile.TemporaryDirectory() as folder:
        Run([*callgrind(folder), program, "send", "--url", options.url, "--ca", options.ca, "--streams",
             str(options.streams), "--requests", str(requests), "--body-bytes", str(BODY_BYTES), "--status", "404"],
            dict(os.environ, SWIFT_BACKTRACE="enable=no")).require(True, "postbell-bench did not get all its answers")
        return instructions(folder)


def worker_run(program, database, options, rows, name):
    with tempfile.TemporaryDirectory() as folder, psycopg.connect(database, autocommit=True) as watcher:
        watcher.execute(ENQUEUE, {"round": name, "rows": rows})
        watcher.execute("VACUUM (ANALYZE)")
        with Worker([*callgrind(folder), program], options.log, DATABASE_URL=f"{database} user=bench_worker",
                    POSTBELL_CONCURRENCY=str(options.streams),
                    POSTBELL_REQUEST_TIMEOUT="60s", POSTBELL_STOP_TIMEOUT="60s", POSTBELL_LEASE="5m") as worker:
            wait_until("all rows settled", lambda: worker.pid and one(watcher, DONE), 300)
        others = one(watcher, "SELECT count(*) FROM postbell.ledger WHERE outcome::text <> 'delivered'")
        if others:
            sys.exit(f"{others} pushes were not delivered")
        return instructions(folder)


def per_push(run, counts):
    """Instructions of one push more, in thousands."""
    few, many = counts
    return (run(many) - run(few)) / (many - few) / 1000


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--worker", required=True)
    arguments.add_argument("--bench", required=True)
    arguments.add_argument("--theirs", required=True, help="folder of the other commit's binaries")
    arguments.add_argument("--database", required=True)
    arguments.add_argument("--their-database", required=True)
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--ca", required=True)
    arguments.add_argument("--log", required=True)
    arguments.add_argument("--rows", default="1000,5000")
    arguments.add_argument("--streams", type=int, default=100)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report(measured(options, {
            "ours": readable(folder, "ours", options.bench, options.worker),
            "theirs": readable(folder, "theirs", f"{options.theirs}/postbell-bench", f"{options.theirs}/postbell"),
        }), options)


def readable(folder, side, *programs):
    """Copies without debugging information, which valgrind 3.19 gives up on when Swift 6.3 wrote it."""
    copies = [f"{folder}/{side}-{Path(program).name}" for program in programs]
    for program, copy in zip(programs, copies):
        subprocess.run(["strip", "--strip-debug", "-o", copy, program], check=True)
    return copies


def measured(options, programs):
    counts = [int(count) for count in options.rows.split(",")]
    found = {}
    for number in range(options.rounds):
        for side, (bench, worker) in programs.items():
            database = options.database if side == "ours" else options.their_database
            found.setdefault(("HTTP/2 client", side), []).append(
                per_push(lambda count: client_run(bench, options, count), counts))
            found.setdefault(("whole worker", side), []).append(
                per_push(lambda count: worker_run(worker, database, options, count, f"{number}.{count}"), counts))
        progress(f"round {number + 1} of {options.rounds}")
    return found


def report(found, options):
    # The smallest: whatever disturbs a run (a poll more, a batch split) only adds.
    print(f"\nInstructions per push under callgrind, {options.streams} streams, "
          f"smallest of {options.rounds} rounds, in thousands\n")
    limits = Limits()
    rows = []
    for what in ("HTTP/2 client", "whole worker"):
        ours, theirs = (min(found[what, side]) for side in ("ours", "theirs"))
        rows.append([what, f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.3f}",
                     limits.most(f"instructions of the {what}, ours / theirs", ours / theirs, LIMIT)])
    table(["what", "theirs", "ours", "ours / theirs", "limit"], rows)
    limits.finish()


main()
