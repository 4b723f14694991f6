#!/usr/bin/env python3
"""How long a push takes from the producer's INSERT to the provider's answer, at 10 rows a second, beside what nobody
can avoid: a commit of the same INSERT and one request on an open connection.

    latency.py --worker FILE --database CONNECTION --url URL --key FILE --key-id ID --team-id ID --requests FILE
               --log FILE [--rows N] [--rounds N] [--rate N]

A round has three parts, each at the same rate, the rows at the same random instants (exponential gaps), so that a
processor that sleeps between rows sleeps in all of them:

  commit   the INSERT in autocommit through the real triggers while no worker runs: from before it is sent until the
           server says that it is committed
  request  one h2load connection with one stream to the same fake provider: from the request to the whole answer
  push     the same INSERT with a worker: from before it is sent until the fake provider's log has the request; the fake
           writes that line, with its own time, just before it answers. Both clocks are this machine's.

FILE of --requests is where the fake provider logs.
"""

import argparse
import datetime
import json
import random
import tempfile
import time

import psycopg

from h2load import request_seconds
from measure import Limits, median, progress, quantile, spread, table
from provider_token import provider_token
from worker import DONE, Worker, one, wait_until

PUSH_LIMIT, TAIL_LIMIT = 3, 5
INSERT = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload) VALUES (%s, 'bench', %s, %s, %s)
"""


def insert_paced(connection, options, name):
    """Inserts rows at random instants; for each its key, when it was sent, and how long the commit took."""
    draws = random.Random(name)
    due, sent = time.monotonic(), []
    for number in range(options.rows):
        due += draws.expovariate(options.rate)
        time.sleep(max(0.0, due - time.monotonic()))
        key = f"{name}:{number}"
        values = (f"person-{1 + number % options.devices}", key, f"run:{number}",
                  json.dumps({"run_id": f"00000000-0000-4000-8000-{number:012}"}))
        started, clock = time.time(), time.perf_counter()
        connection.execute(INSERT, values)
        sent.append((key, started, time.perf_counter() - clock))
    return sent


def answers(path, offset):
    """Time of the first request for each collapse id (the row's key) in the fake's log from `offset` on."""
    found = {}
    with open(path, encoding="utf-8") as log:
        log.seek(offset)
        for line in log:
            entry = json.loads(line)
            if entry["status"] == 200:
                at = datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00")).timestamp()
                found.setdefault(entry["headers"].get("apns-collapse-id"), at)
    return found


def size(path):
    with open(path, "rb") as file:
        return file.seek(0, 2)


def measured_round(options, producer, watcher, name):
    commits = [seconds for _, _, seconds in insert_paced(producer, options, f"{name}.commit")]
    token = provider_token(options.key, options.key_id, options.team_id)
    requests = request_seconds(options.url, options.rows, options.rate, token)
    with Worker(options.worker, options.log) as worker:
        worker.wait_until_idle(watcher)
        offset = size(options.requests)
        pushed = insert_paced(producer, options, f"{name}.push")
        wait_until("all rows settled", lambda: worker.pid and one(watcher, DONE), 60)
    answered = answers(options.requests, offset)
    pushes = [answered[key] - started for key, started, _ in pushed]
    return {"commit": commits, "request": requests, "push": pushes}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("worker", "database", "url", "key", "key-id", "team-id", "requests", "log"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--devices", type=int, default=1000)
    arguments.add_argument("--rows", type=int, default=200)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--rate", type=float, default=10)
    options = arguments.parse_args()
    with psycopg.connect(options.database, autocommit=True) as watcher, \
            psycopg.connect(options.database, autocommit=True) as producer:
        producer.prepare_threshold = 0
        rounds = []
        for number in range(options.rounds):
            rounds.append(measured_round(options, producer, watcher, f"{number}"))
            progress(f"round {number + 1} of {options.rounds}")
    report(rounds, options)


def report(rounds, options):
    def quantiles(part, share):
        return [quantile(one_round[part], share) for one_round in rounds]

    print(f"\nLatency at {options.rate:g} rows/s, {options.rows} rows a round, milliseconds, "
          f"median of {options.rounds} rounds (smallest–largest)\n")
    table(["what", "p50", "p90", "p99", "largest"], [
        [part, *(spread([value * 1000 for value in quantiles(part, share)]) for share in (0.5, 0.9, 0.99, 1))]
        for part in ("commit", "request", "push")])
    middle, tail = quantiles("push", 0.5), quantiles("push", 0.99)
    floor = [commit + request for commit, request in zip(quantiles("commit", 0.5), quantiles("request", 0.5))]
    limits = Limits()
    print()
    rows = []
    for what, ratios, limit in (
            ("p50 of push / (p50 of commit + p50 of request)", [a / b for a, b in zip(middle, floor)], PUSH_LIMIT),
            ("p99 of push / p50 of push", [a / b for a, b in zip(tail, middle)], TAIL_LIMIT)):
        rows.append([what, spread(ratios), limits.most(what, median(ratios), limit)])
    table(["ratio", "measured", "limit"], rows)
    limits.finish()


main()
