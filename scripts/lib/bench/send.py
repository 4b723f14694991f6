#!/usr/bin/env python3
"""The HTTP/2 client alone, beside h2load, against the same nghttpd: CPU per request of each client.

    send.py --bench FILE --url URL --ca FILE [--requests N] [--rounds N] [--streams 100,1000]

Rounds are interleaved, because the machine's speed drifts: compare within a run, never between runs.
"""

import argparse
import os
import re
import tempfile

from measure import Run, median, progress, spread, table

BODY_BYTES = 256
HEADERS = {  # as a push has them; h2load repeats them as they are, our client varies path, id and collapse id
    "authorization": "bearer " + "x" * 200,
    "apns-topic": "com.example.demo",
    "apns-push-type": "alert",
    "apns-priority": "10",
    "apns-expiration": "1900000000",
    "apns-id": "00000000-0000-4000-8000-000000000001",
    "apns-collapse-id": "approval:00000001",
}


def h2load(url, streams, requests, body):
    headers = [argument for name, value in HEADERS.items() for argument in ("-H", f"{name}: {value}")]
    run = Run(["h2load", "-t1", "-c1", f"-m{streams}", f"-n{requests}", "-d", body, *headers,
               f"{url}/3/device/{'a' * 64}"])
    finished = re.search(r"(\d+) done, \d+ succeeded", run.output)
    return run.require(finished and int(finished.group(1)) == requests, "h2load did not finish its requests")


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
    with tempfile.NamedTemporaryFile() as body:
        body.write(b'{"aps":{"alert":{"title":"Approval needed"}}}'.ljust(BODY_BYTES))
        body.flush()
        for number in range(options.rounds + 1):
            for level in levels:
                for name in ("h2load", "postbell"):
                    run = h2load(options.url, level, options.requests, body.name) if name == "h2load" else \
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
    table(["streams", "postbell / h2load, CPU", "limit"], [
        [level, spread([microseconds(ours) / microseconds(theirs)
                        for ours, theirs in zip(runs["postbell", level], runs["h2load", level])]), "1.60"]
        for level in levels])


main()
