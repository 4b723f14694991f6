#!/usr/bin/env python3
"""The judges of large loads see what they are there to see: prints `ok` or `not ok` for each made-up load."""

import sys

from census import FOREVER, NAMED, Census
from poison import judge_poison
from revoke import judge, lags

NAME, OTHER = "01000000-0000-7000-8000-000000000001", "01000000-0000-7000-8000-000000000002"
KINDS = ("lost", "late", "unexplained", "untrue", "strange", "duplicate")


def census(arrivals, rows, status="dispatched", deadline=FOREVER, name=NAME):
    made = Census()
    made.commit(NAME, deadline)
    for at, accepted in arrivals:
        made.arrive(name, at, accepted)
    for outcome in rows:
        made.row(NAME, outcome)
    if status:
        made.end(NAME, status)
    faults = made.judge()
    return {kind: made.counts[kind] for kind in KINDS if made.counts[kind]}, bool(faults)


ONCE, TWICE = [(1, True)], [(1, True), (8, True)]
CENSUS = [
    ("once, and settled", census(ONCE, ["delivered"]), {}),
    ("after a 503", census([(1, False), (3, True)], ["retry", "delivered"]), {}),
    ("never sent", census([], []), {"lost": 1}),
    ("sent and pending", census(ONCE, [], "pending"), {"lost": 1, "untrue": 1}),
    ("gone from the outbox", census(ONCE, ["delivered"], None), {"lost": 1}),
    ("failed", census([(1, False)], ["retry"], "failed"), {"lost": 1}),
    ("twice", census(TWICE, ["delivered", "delivered"]), {"duplicate": 1, "unexplained": 1}),
    ("twice, after a lost outcome", census(TWICE, ["unknown", "delivered"]), {"duplicate": 1}),
    ("three times, after one lost outcome", census([*TWICE, (9, True)], ["unknown", "delivered", "delivered"]),
     {"duplicate": 2, "unexplained": 1}),
    ("twice, once on the ledger", census(TWICE, ["delivered"]), {"duplicate": 1, "unexplained": 1, "untrue": 1}),
    ("delivered on the ledger alone", census([], ["delivered"]), {"lost": 1, "untrue": 1}),
    ("unknown, and never at the provider", census(ONCE, ["unknown", "delivered"]), {}),
    ("sent and never committed", census(ONCE, [], "expired", 5, name=OTHER), {"strange": 1}),
    ("expired without a deadline", census([], [], "expired"), {"lost": 1}),
    ("expired in the queue", census([], [], "expired", 5), {}),
    ("expired on lease", census([], ["skipped"], "expired", 5), {}),
    ("expired after a 503", census([(1, False)], ["retry"], "expired", 5), {}),
    ("expired and accepted", census(ONCE, ["delivered"], "expired", 5), {"lost": 1}),
    ("expired, its outcome lost", census(ONCE, ["unknown"], "expired", 5), {}),
    ("accepted within the second", census([(5.9, True)], ["delivered"], deadline=5), {}),
    ("accepted later", census([(6.1, True)], ["delivered"], deadline=5), {"late": 1}),
    ("refused later", census([(6.1, False)], ["retry"], "expired", 5), {}),
]

# Struck at 10, of five notifications each.
COMMITS = {"under way": 10, "stopped at once": 10, "not begun": 10, "over": 10, "never asked for": 10}
REQUESTS = [(9, "under way"), (10.4, "under way"), (10.7, "under way"), (8, "stopped at once"), (9, "stopped at once"),
            (10.5, "not begun"), *((9 + part / 10, "over") for part in range(5)), (11, "nobody's")]
FOUND = lags(COMMITS, REQUESTS, 5)
EVEN = [0.0] * 50 + [1.0] * 50
LIMITS = [
    ("within the limit", judge(EVEN, 100, 1.1), 0),
    ("one of a hundred beyond it", judge([*EVEN[1:], 3.0], 100, 1.1), 0),
    ("two of a hundred beyond it", judge([*EVEN[2:], 3.0, 3.0], 100, 1.1), 1),
    ("too few", judge(EVEN, 101, 1.1), 1),
    ("nothing was in hand", judge([0.0] * 100, 100, 1.1), 1),
]
ASIDE = (True, "failed", "crashes")
POISON = [
    ("set aside", judge_poison([ASIDE], 5), 0),
    ("twice", judge_poison([ASIDE, ASIDE], 5), 1),
    ("not at all", judge_poison([], 5), 1),
    ("for another reason", judge_poison([(True, "failed", "ceiling")], 5), 1),
    ("the whole notification", judge_poison([(False, "failed", "crashes")], 5), 1),
    ("after too many deaths", judge_poison([ASIDE], 6), 1),
]

failed = False


def tell(what, good, found):
    global failed
    failed = failed or not good
    print(f"{'ok' if good else 'not ok'} the judge of large loads: {what}" + ("" if good else f"\n    {found}"))


for what, (found, broke), expected in CENSUS:
    tell(what, found == expected and broke == bool(expected.keys() - {"duplicate"}), (found, broke))
many = Census()
for number in range(300):
    many.commit(f"{number:032x}")
told = [line for line in many.judge() if line.startswith("lost")]
tell("three hundred lost ones are counted, and a few of them named",
     many.counts["lost"] == 300 and len(told) == NAMED + 1, told)
tell("lags are those of victims that were being sent for",
     {name: round(lag, 3) for name, lag in FOUND.items()} == {"under way": 0.7, "stopped at once": 0.0}, FOUND)
for what, found, expected in LIMITS:
    tell(f"lags, {what}", len(found) == expected, found)
for what, found, expected in POISON:
    tell(f"poison, {what}", len(found) == expected, found)
sys.exit(failed)
