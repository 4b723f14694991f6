#!/usr/bin/env python3
"""The HTTP/2 client alone, beside h2load, against the same nghttpd: CPU per request of each client.

    send.py --bench FILE --url URL --ca FILE [--requests N] [--rounds N] [--streams 100,1000]

Rounds are interleaved, because the machine's speed drifts: compare within a run, never between runs.
"""

import argparse
import os

from h2load import BODY_BYTES, h2load
from measure import Limits, Run, median, progress, spread, table

def ours(bench, url, ca, streams, requests):
    run = Run([bench, "send", "--url", url, "--ca", ca, "--streams", str(streams), "--requests", str(requests),
               "--body-bytes", str(BODY_BYTES), "--status", "404"], dict(os.environ, SWIFT_BACKTRACE="enable=no"))
    return run.require(True, "postbell-bench did not get all its answers")  # its status says so


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bench", required=True)
    arguments.add_argument("--url", required=True)
    arguments.add_argument("--ca", required=True)
    arguments.add_argument("--requests", type=int, default=50_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--streams", default="100,1000")
    options = arguments.parse_args()
    levels = [int(level) for level in options.streams.split(",")]
    runs = {(name, level): [] for level in levels for name in ("h2load", "postbell")}
    for number in range(options.rounds + 1):
        for level in levels:
            for name in ("h2load", "postbell"):
                run = h2load(options.url, level, options.requests) if name == "h2load" else \
                    ours(options.bench, options.url, options.ca, level, options.requests)
                if number > 0:  # the first round warms caches up
                    runs[name, level].append(run)
        progress(f"round {number} of {options.rounds}")
    report(runs, levels, options)


def report(runs, levels, options):
    def microseconds(run):
        return run.cpu / options.requests * 1e6

    print(f"\nHTTP/2 client alone, {options.requests} requests of {BODY_BYTES} bytes over one connection, "
          f"median of {options.rounds} rounds (smallest–largest)\n")
    table(["client", "streams", "CPU µs/request", "requests/s", "RSS MB"], [
        [name, level, spread([microseconds(run) for run in runs[name, level]]),
         f"{median([options.requests / run.seconds for run in runs[name, level]]):.0f}",
         f"{median([run.megabytes for run in runs[name, level]]):.0f}"]
        for level in levels for name in ("h2load", "postbell")])
    print()
    limits = Limits()
    rows = []
    for level in levels:
        ratios = [ours.cpu / theirs.cpu for ours, theirs in zip(runs["postbell", level], runs["h2load", level])]
        rows.append([level, spread(ratios), limits.most(f"client / h2load at {level} streams", median(ratios), 1.6)])
    table(["streams", "postbell / h2load, CPU", "limit"], rows)
    limits.finish()


main()
