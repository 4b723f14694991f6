#!/usr/bin/env python3
"""The judge of the soak sees what it is there to see: prints `ok` or `not ok` for each made-up round."""

import sys
import uuid

import witnesses

NAME, DEVICE, TOKEN = "n1", 7, "fa003a"


def arrival(at, name=NAME, collapse="k1", token=TOKEN, accepted=True):
    return witnesses.Arrival(at, name, collapse, token, accepted)


def row(at, outcome="delivered", batch="b1", reason=None, late=False, name=NAME):
    return witnesses.LedgerRow(at, name, DEVICE, batch, outcome, reason, outcome == "delivered", late)


def judge(arrivals, ledger, status="dispatched"):
    return witnesses.Verdict({NAME: [DEVICE]}, {TOKEN: DEVICE}, {NAME: status}, ledger, arrivals)


TWICE = [arrival(1), arrival(8)]
CASES = [
    ("once, and settled", judge([arrival(1)], [row(1.1)]), (1, 0, 0, 0), True),
    ("twice, with an unknown row in between",
     judge(TWICE, [row(6, "unknown", reason="lease_lost"), row(8.1, batch="b2")]), (2, 1, 0, 0), True),
    ("twice, with nothing in between", judge(TWICE, [row(1.1), row(8.1, batch="b2")]), (2, 1, 1, 0), False),
    ("twice, with the unknown row only afterwards",
     judge(TWICE, [row(8.1, batch="b2"), row(9, "unknown")]), (2, 1, 1, 0), False),
    ("twice, with another notification's unknown row",
     judge(TWICE, [row(6, "unknown", name="n2"), row(8.1)]), (2, 1, 1, 0), False),
    ("twice under another collapse id",
     judge([arrival(1), arrival(8, collapse="k2")], [row(6, "unknown"), row(8.1)]), (2, 1, 1, 0), False),
    ("twice without a collapse id",
     judge([arrival(1, collapse=None), arrival(8, collapse=None)], [row(6, "unknown"), row(8.1)]), (2, 1, 1, 0), False),
    ("twice, the first settled after its lease had lapsed",
     judge(TWICE, [row(7, late=True), row(8.1, batch="b2")]), (2, 1, 0, 0), True),
    ("three times, explained once",
     judge([*TWICE, arrival(12)], [row(6, "unknown"), row(12.1)]), (3, 2, 1, 0), False),
    ("never sent", judge([], [row(1.1)]), (0, 0, 0, 1), False),
    ("refused", judge([arrival(1, accepted=False)], [row(1.1)]), (0, 0, 0, 1), False),
    ("sent and still pending", judge([arrival(1)], [row(1.1)], "pending"), (1, 0, 0, 1), False),
    ("sent and not on the ledger", judge([arrival(1)], []), (1, 0, 0, 0), False),
    ("sent and never committed", judge([arrival(1), arrival(1, name="n9")], [row(1.1)]), (2, 0, 0, 0), False),
]

failed = False
for name, verdict, expected, holds in CASES:
    found = (verdict.accepted, verdict.duplicate, verdict.unexplained, verdict.lost)
    good = found == expected and (not verdict.faults) == holds
    failed = failed or not good
    print(f"{'ok' if good else 'not ok'} the soak's judge: {name}" + ("" if good else f": {found} {verdict.faults}"))
at = witnesses.uuid_time(uuid.UUID(int=(1_700_000_000_123 << 80) | (7 << 76)))
died = witnesses.in_flight_at(5, [(NAME, DEVICE), ("n2", DEVICE)], [arrival(4), arrival(6, name="n2")], {TOKEN: DEVICE})
print("ok" if at == 1_700_000_000.123 else "not ok", "the soak's judge: the instant of a ledger row is that of its id")
print("ok" if died == 1 else "not ok", "the soak's judge: in flight is what was held and had reached the provider")
sys.exit(failed or at != 1_700_000_000.123 or died != 1)
