"""Packets that are dropped: a rule in the network namespace that scripts/faults has made for this run alone."""

import json
import shutil
import subprocess

TABLE = "inet postbell_faults"
# Dropped on their way in, in both directions: whoever sends them learns nothing.
RULES = """
table {table} {{
    counter syn {{ }}
    counter other {{ }}
    chain hole {{
        type filter hook input priority filter;
        tcp dport {port} tcp flags & (syn | ack) == syn counter name syn drop
        tcp dport {port} counter name other drop
        tcp sport {port} counter name other drop
    }}
}}
"""


def hindrance(options):
    """Why no packet can be dropped here; None when it can."""
    if not options.own_network:
        return "no network namespace of its own can be made here (it takes root, or user namespaces)"
    if not shutil.which("nft"):
        return "nft is missing (Debian's package nftables)"
    return None


class BlackHole:
    """`with BlackHole(port) as hole`: packets from and to this port are dropped meanwhile. `hole.dropped()` counts
    them: those that would have opened a connection, and all others."""

    def __init__(self, port):
        self.port = port

    def __enter__(self):
        nft("-f", "-", text=RULES.format(table=TABLE, port=self.port))
        return self

    def __exit__(self, *_):
        nft("delete", "table", *TABLE.split())

    def dropped(self):
        found = {}
        for entry in json.loads(nft("-j", "list", "counters", "table", *TABLE.split()))["nftables"]:
            if "counter" in entry:
                found[entry["counter"]["name"]] = entry["counter"]["packets"]
        return found["syn"], found["other"]


def nft(*arguments, text=None):
    done = subprocess.run(["nft", *arguments], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"nft {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
