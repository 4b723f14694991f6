#!/usr/bin/env python3
"""CPU per row of the PostgreSQL backends, without worker and network: claim and settle beside the protocol sketch, the
insert through the triggers beside the sketch's, the claim with many rows queued, and under a pinned horizon.

    sql.py --server CONNECTION [--rounds N]

CONNECTION belongs to a superuser of a private server on this machine; databases are made there and dropped.
"""

import argparse

from measure import Limits, median, progress, spread, table
from sides import Real, Reference

DATABASES = ("postbell_bench_reference", "postbell_bench_real")
LINES = [(1000, 1, False), (1000, 8, False), (1000, 8, True)]  # batch, flushes, whether 3 % go back
FEW, MANY = 20_000, 1_000_000
PINNED_ROWS, EDGE = 200_000, 8  # rows settled under a pin, and rounds measured at its beginning and its end


def claim_and_settle(options, limits):
    """The statements of the worker beside those of the sketch, and what the insert costs both."""
    rows, inserts = [], []
    for subjects in (False, True):
        sides = [kind(options.server, name, subjects) for kind, name in zip((Reference, Real), DATABASES)]
        try:
            for side in sides:
                side.enqueue((len(LINES) * options.rounds + 4) * 1000, 10)
                side.settle_down()
                for _ in range(4):
                    side.round()
            for line in LINES:
                pairs = [[side.round(*line) for side in sides] for _ in range(options.rounds)]
                rows.append(statement_row(subjects, line, pairs, limits))
            for size, statements in ((1, 500), (1000, 4)):
                pairs = [[side.enqueue(size * statements, statements) for side in sides]
                         for _ in range(options.rounds)]
                inserts.append(insert_row(subjects, size, pairs, limits))
        finally:
            for side in sides:
                side.close()
        progress(f"claim and settle, {'with' if subjects else 'without'} subjects: measured")
    print(f"\nClaim and settle, backend CPU µs/row, median of {options.rounds} rounds (smallest–largest)\n")
    table(["subjects", "batch", "flushes", "retries", "sketch claim + settle", "ours claim + settle", "ours / sketch",
           "limit", "WAL bytes/row, sketch and ours"], rows)
    print(f"\nInsert through the triggers, backend CPU µs/row, median of {options.rounds} rounds\n")
    table(["subjects", "rows per statement", "sketch", "ours", "ours / sketch", "limit"], inserts)


def statement_row(subjects, line, pairs, limits):
    batch, flushes, retries = line
    (claim, settle, wal), (our_claim, our_settle, our_wal) = (
        [median(column) for column in zip(*side)] for side in zip(*pairs))
    # of each round's pair, because the machine's speed changes between rounds
    ratios = [(ours[0] + ours[1]) / (theirs[0] + theirs[1]) for theirs, ours in pairs]
    name = f"claim and settle, {'with' if subjects else 'without'} subjects, {flushes} flushes"
    return ["yes" if subjects else "no", batch, flushes, "3 %" if retries else "none",
            f"{claim:.1f} + {settle:.1f} = {claim + settle:.1f}",
            f"{our_claim:.1f} + {our_settle:.1f} = {our_claim + our_settle:.1f}",
            spread(ratios), limits.most(name, median(ratios), 1.15), f"{wal:.0f}, {our_wal:.0f}"]


def insert_row(subjects, size, pairs, limits):
    ratios = [ours / theirs for theirs, ours in pairs]
    theirs, ours = (median(side) for side in zip(*pairs))
    name = f"insert, {'with' if subjects else 'without'} subjects, {size} rows per statement"
    return ["yes" if subjects else "no", size, f"{theirs:.1f}", f"{ours:.1f}", spread(ratios),
            limits.most(name, median(ratios), 2.5)]


def depth(options, limits, few, many):
    """The claim with many rows queued beside the claim with few."""
    pairs = []
    for number in range(options.rounds + 4):
        pair = [side.round()[0] for side in (few, many)]
        few.enqueue(1000)
        if number >= 4:
            pairs.append(pair)
    ratios = [deep / flat for flat, deep in pairs]
    print(f"\nClaim by depth of the queue, backend CPU µs/row, median of {options.rounds} rounds\n")
    table(["rows queued", "claim", "claim / claim with few", "limit"], [
        [few.queued(), spread([flat for flat, _ in pairs]), "1.00", ""],
        [many.queued(), spread([deep for _, deep in pairs]), spread(ratios),
         limits.most(f"claim with {MANY} rows queued", median(ratios), 1.3)]])


def pinned(options, limits, side):
    """What the statements of the worker cost while an idle transaction keeps every dead row and index entry alive:
    at first, and when many rows were settled since."""
    figures = []
    for number in range(options.pins):
        side.settle_down()
        with side.connect() as reader:
            reader.autocommit = False
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT FROM postbell.outbox LIMIT 1")
            edges = [[], []]
            for count in range(PINNED_ROWS // 1000):
                one = side.round()
                for edge, counts in zip(edges, (count < EDGE, count >= PINNED_ROWS // 1000 - EDGE)):
                    if counts:
                        edge.append([*one[:2], side.search()])
        figures.append([[median(column) for column in zip(*edge)] for edge in edges])
        progress(f"pinned horizon: {number + 1} of {options.pins}")
    print(f"\nUnder an idle REPEATABLE READ transaction, backend CPU µs/row, median of {options.pins} pins "
          f"of {PINNED_ROWS} settled rows each\n")
    rows = []
    for part, name in enumerate(("claim", "settle")):
        ratios = [last[part] / first[part] for first, last in figures]
        rows.append([name, spread([first[part] for first, _ in figures]), spread([last[part] for _, last in figures]),
                     spread(ratios), limits.most(f"{name} under a pinned horizon", median(ratios), 1.3)])
    rows.append(["search for shares, µs each", *(spread([edge[2] for edge in edges]) for edges in zip(*figures)),
                 spread([last[2] / first[2] for first, last in figures]), "rationed"])
    table(["statement", "at first", f"after {PINNED_ROWS} settled rows", "last / first", "limit"], rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--pins", type=int, default=5)
    options = arguments.parse_args()
    limits = Limits()
    claim_and_settle(options, limits)
    few, many = Real(options.server, "postbell_bench_few"), Real(options.server, "postbell_bench_many")
    try:
        few.enqueue(FEW + 4000, 4)
        many.enqueue(max(MANY, (options.pins + 1) * PINNED_ROWS), 100)
        for side in (few, many):
            side.settle_down()
        progress("the queues are filled")
        depth(options, limits, few, many)
        pinned(options, limits, many)
    finally:
        for side in (few, many):
            side.close()
    limits.finish()


main()
