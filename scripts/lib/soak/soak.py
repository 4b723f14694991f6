#!/usr/bin/env python3
"""Rows are enqueued while two workers run and one of them is killed at random moments; then three witnesses are joined.

    soak.py --programs FOLDER --server CONNECTION --requests FILE --logs FOLDER [--rounds N] [--rows N] [--seed N]

CONNECTION belongs to a superuser of a private server; where the fake provider is, and its key, comes from the
environment, and FILE is its log. Each round has a database of its own and prints one line. The status is 0 only if
every round holds and every kill met requests in flight.
"""

import argparse
import os
import random
import sys

from soak_round import Round


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("programs", "server", "requests", "logs"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--rounds", type=int, default=10)
    arguments.add_argument("--rows", type=int, default=10_000)
    arguments.add_argument("--rate", type=float, default=800, help="rows enqueued per second")
    arguments.add_argument("--kills", type=int, default=3)
    arguments.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = arguments.parse_args()
    print(f"seed {options.seed}", flush=True)
    draws, bad = random.Random(options.seed), 0
    for number in range(1, options.rounds + 1):
        faults = Round(options, number, draws.randrange(1 << 32)).run()
        bad += bool(faults)
        for line in faults[:20]:
            print(f"round {number}: {line}", file=sys.stderr)
        if len(faults) > 20:
            print(f"round {number}: and {len(faults) - 20} more", file=sys.stderr)
    print(f"{options.rounds - bad} of {options.rounds} rounds hold", flush=True)
    sys.exit(1 if bad else 0)


os.umask(0o077)
main()
