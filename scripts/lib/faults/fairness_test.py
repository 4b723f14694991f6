#!/usr/bin/env python3
"""The judges of fairness see what they are there to see: prints `ok` or `not ok` for each made-up run."""

import sys

from claims import Claims
from fairness import judge_crowd, judge_memory, judge_others, judge_rounds, judge_share, judge_waits


class Session:
    """Answers whatever it is asked with these rows."""

    def __init__(self, rows):
        self.rows = rows

    def execute(self, _):
        return self

    def fetchall(self):
        return self.rows


CLAIMS = Claims(Session([(1.0, "b1"), (2.0, "b2"), (3.0, "b3"), (4.0, "b4")]))
EVEN, TOKENS = [(800, 200)] * 3, dict.fromkeys(range(1000), 1)
CASES = [
    ("the claim that began next is the first", CLAIMS.since(1.5, "b2"), 1),
    ("the one after it is the second", CLAIMS.since(1.5, "b3"), 2),
    ("one that had begun before is none", CLAIMS.since(2.5, "b2"), 0),
    ("all served by the second claim", judge_waits("x", [(1, 0.1), (2, 0.1)], 2), False),
    ("one served by the third", judge_waits("x", [(1, 0.1), (3, 0.1)], 2), True),
    ("one never served", judge_waits("x", [(1, 0.1)], 2), True),
    ("two rounds of searches", judge_rounds("x", [(4, 0.1)], 1, 101), False),
    ("more claims than rounds", judge_rounds("x", [(5, 0.1)], 1, 101), True),
    ("one round of searches", judge_rounds("x", [(3, 0.1)], 1, 64), True),
    ("bulk has its share", judge_share(EVEN, 20), False),
    ("bulk has too little", judge_share([(820, 180)] * 3, 20), True),
    ("bulk has too much", judge_share([(780, 220)] * 3, 20), True),
    ("bulk has its share on the whole, and starves for a while", judge_share([*EVEN, (1000, 0), (600, 400)], 20), True),
    ("nothing served", judge_share([], 20), True),
    ("nothing served for a while", judge_share([*EVEN, (0, 0)], 20), True),
    ("each device once, in pages", judge_crowd(1000, 500, TOKENS, [500, 500]), False),
    ("a device left out", judge_crowd(1001, 500, TOKENS, [500, 500, 1]), True),
    ("a device twice", judge_crowd(1000, 500, TOKENS | {7: 2}, [500, 500]), True),
    ("all devices in one claim", judge_crowd(1000, 500, TOKENS, [1000]), True),
    ("a page that nobody claimed", judge_crowd(1000, 500, TOKENS, [500]), True),
    ("memory flat", judge_memory(30.0, 45.0), False),
    ("memory grown", judge_memory(30.0, 51.0), True),
    ("others as before", judge_others(100.0, 140.0), False),
    ("others later", judge_others(100.0, 160.0), True),
]

failed = False
for name, found, expected in CASES:
    good = found == expected if isinstance(found, int) else bool(found) == expected
    failed = failed or not good
    print(f"{'ok' if good else 'not ok'} the judges of fairness: {name}")
    if not good:
        print(f"    {found}")
sys.exit(failed)
