#!/usr/bin/env python3
"""Providers and the database fail, loads are large, and what workers do about it is counted.

    faults.py --programs FOLDER --server CONNECTION --folder FOLDER [--minutes N] [--rows N]
              [--own-network] [--only NAME]…

CONNECTION belongs to a superuser of a private server; logs go to the folder. With --own-network this runs in a network
namespace that was made for it, and may drop packets there. Each fault has a database and a fake provider of its own and
prints one line. The status is 0 when all holds, 3 when a limit broke or could not be shown.
"""

import argparse
import copy
import os
import subprocess
import sys
import threading

import backlog
import crowd
import expiry
import fault_free
import isolation
import outages
import pausing
import poison
import pooler
import refusals
import refusing
import restart
import revoke
import sessions
import shares
import storm
import tenants
import waking

# All at once: they wait more than they work. Those behind are measured or busy, and run alone.
TOGETHER = {"503": outages.unavailable, "429": outages.throttled, "403": refusals.refused}
ALONE = {"goaway": storm.run, "isolation": isolation.run, "backlog": backlog.backlog, "tenants": tenants.run,
         "bulk-share": shares.run, "devices": crowd.run}
# A server of its own for each, with a load on it all the time: one after the other, for they measure recovery.
DATABASE = {"restart": restart.restart, "failover-sync": restart.synchronous, "failover-async": restart.asynchronous,
            "terminate": sessions.terminate, "replies": sessions.replies, "half-open": sessions.half_open,
            "pooler": pooler.run, "recovery": refusing.recovery, "disk": refusing.disk, "wal": refusing.wal,
            "limits": refusing.limits, "slow": refusing.slow, "locks": refusing.locks, "notify": waking.notify,
            "flood": waking.flood, "paused": pausing.paused}
# Nothing fails but what is named; there are many rows: so many by default.
SIZES = {"fault-free": (fault_free.run, 1_000_000), "expiry": (expiry.run, 1_000_000),
         "revoke": (revoke.run, 6_000), "poison": (poison.run, 1_000)}
ROWS = 20_000  # of the others
EVERY = {name: (fault, ROWS) for name, fault in (TOGETHER | ALONE | DATABASE).items()} | SIZES


def guarded(name, options, broken):
    """Runs one fault; whatever it raises is its failure, and the others go on."""
    fault, rows = EVERY[name]
    options = copy.copy(options)
    options.rows = options.rows or rows
    try:
        faults = fault(options)
    except SystemExit as end:
        faults = [str(end)]
    except Exception as failure:  # said like any other, so that no fault hides behind it
        faults = [f"{type(failure).__name__}: {failure}"]
    broken.extend(faults)
    for line in faults[:20]:
        print(f"  broke: {line}", file=sys.stderr, flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("programs", "server", "folder", "postgres", "clusters"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--minutes", type=int, default=10)
    arguments.add_argument("--rows", type=int)
    arguments.add_argument("--account", default="")
    arguments.add_argument("--own-network", action="store_true")
    arguments.add_argument("--only", action="append", choices=[*EVERY], default=[])
    options = arguments.parse_args()
    if options.own_network:  # a new one has nothing but a loopback interface that is down
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    broken = []
    wanted = options.only or [*EVERY]
    threads = [threading.Thread(target=guarded, args=(name, options, broken)) for name in TOGETHER if name in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in EVERY:
        if name in wanted and name not in TOGETHER:
            guarded(name, options, broken)
    sys.exit(3 if broken else 0)


os.umask(0o077)
main()
