#!/usr/bin/env python3
"""The judge of the crash matrix sees what it is there to see: prints `ok` or `not ok` for each made-up round."""

import sys

from crash_judge import Enqueued, Judgement, Lease, Request, Row

NAME, PHONE = "n1", 7
TARGET = (NAME, PHONE)


def request(at, status=200, collapse="k1", name=NAME):
    return Request(at, name, PHONE, status, collapse)


def row(at, outcome="delivered", batch="b1", reason=None, late=False, status=None):
    return Row(at, NAME, PHONE, batch, outcome, reason, outcome == "delivered", late,
               200 if outcome == "delivered" else status)


def lease(claimed_at, ended_at, batch="b1", until=None):
    return Lease(batch, claimed_at, until or claimed_at + 5, ended_at, [TARGET])


def judge(requests, ledger, leases, status="dispatched", violations=(), ends=("dispatched",), **more):
    return Judgement({NAME: Enqueued([PHONE], set(ends))}, {NAME: status}, ledger, requests, leases, violations, **more)


ONCE, TWO = [lease(0, 2)], [lease(0, 7), lease(8, 9, "b2")]
LOST = row(7, "unknown", reason="lease_lost")
AGAIN = row(8.2, batch="b2")
CASES = [
    ("once, claimed and delivered", judge([request(1)], [row(1.1)], ONCE), {}),
    ("lost to a death and sent again", judge([request(1), request(8.1)], [LOST, AGAIN], TWO), {"duplicate": 1}),
    ("never sent", judge([], [], ONCE, "pending"), {"lost": 1}),
    ("ended for one of two devices only",
     Judgement({NAME: Enqueued([PHONE, 8], {"dispatched"})}, {NAME: "dispatched"}, [row(1.1)], [request(1)], ONCE, []),
     {"lost": 1}),
    ("failed", judge([request(1)], [row(1.1)], ONCE, "failed"), {"lost": 1}),
    ("superseded by its producer", judge([], [], ONCE, "superseded", ends=("dispatched", "superseded")), {}),
    ("superseded by nobody", judge([], [], ONCE, "superseded"), {"lost": 1}),
    ("rolled back and in the outbox", Judgement({}, {NAME: "pending"}, [], [], [], []), {"lost": 1}),
    ("delivered on the ledger, refused at the provider", judge([request(1, 503)], [row(1.1)], ONCE), {"untrue": 1}),
    ("delivered on the ledger, nothing at the provider", judge([], [row(1.1)], ONCE), {"untrue": 1}),
    ("two requests, one ledger row", judge([request(1), request(1.1)], [row(1.2)], ONCE),
     {"untrue": 1, "duplicate": 1, "unexplained": 1}),
    ("a retry after a 503",
     judge([request(1, 503), request(8.1)], [row(1.1, "retry", status=503), AGAIN], TWO), {}),
    ("a request before its claim", judge([request(1)], [row(3)], [lease(2, 4)]), {"unclaimed": 1}),
    ("a request of what nobody committed",
     Judgement({}, {}, [row(1.1)], [request(1)], ONCE, []), {"unclaimed": 1}),
    ("a request after its lease was recovered", judge([request(7.5)], [row(7.6, late=True)], [lease(0, 7)]),
     {"fenced": 1, "stale": 1}),
    ("the same by a lease that has run out", judge([request(6)], [row(6.1)], [lease(0, None)]),
     {"fenced": 1, "stale": 1}),
    ("the same of a paused worker", judge([request(7.5)], [row(7.6, late=True)], [lease(0, 7)], paused=True),
     {"stale": 1}),
    ("a request that was cut off, settled as lost, and arrived afterwards",
     judge([request(2.1), request(8.1)], [row(1.9, "unknown", reason="closed"), AGAIN], [lease(0, 2), TWO[1]]),
     {"duplicate": 1, "stale": 1}),
    ("a request of a lost lease that arrives afterwards",
     judge([request(7.5), request(8.1)], [LOST, AGAIN], TWO), {"duplicate": 1, "fenced": 1, "stale": 1}),
    ("two live leases", judge([request(1)], [row(1.1)], ONCE, violations=["two leases hold n1"]), {"fenced": 1}),
    ("accepted twice with nothing in between", judge([request(1), request(8.1)], [row(1.1), AGAIN], TWO),
     {"duplicate": 1, "unexplained": 1}),
    ("accepted twice, unknown only afterwards",
     judge([request(1), request(8.1)], [row(8.2, batch="b2"), row(9, "unknown")], TWO),
     {"duplicate": 1, "unexplained": 1}),
    ("accepted twice under two collapse ids",
     judge([request(1), request(8.1, collapse="k2")], [LOST, AGAIN], TWO), {"duplicate": 1, "unexplained": 1}),
    ("accepted three times, explained once",
     judge([request(1), request(8.1), request(8.15)], [LOST, AGAIN, row(8.3, batch="b2")], TWO),
     {"duplicate": 2, "unexplained": 1}),
]
COUNTED = ("lost", "untrue", "unclaimed", "fenced", "unexplained", "duplicate", "stale")

failed = False
for name, verdict, expected in CASES:
    found = {kind: verdict.counts[kind] for kind in COUNTED if verdict.counts[kind]}
    good = found == expected and bool(verdict.faults) == bool(expected.keys() - {"duplicate", "stale"})
    failed = failed or not good
    print(f"{'ok' if good else 'not ok'} the crash matrix's judge: {name}")
    if not good:
        print(f"    {found} {verdict.faults}")
sys.exit(failed)
