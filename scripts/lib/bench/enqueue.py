#!/usr/bin/env python3
"""What enqueueing costs producers: one row per transaction beside the same rows inserted by hand, the parts of it, and
many rows in one statement.

    enqueue.py --server CONNECTION --pgbench FILE [--rounds N] [--producers 1,16,32] [--seconds N] [--rows N] [--bulk N]

CONNECTION belongs to a superuser of a private server on this machine; a database and a role are made there and dropped.
"""

import argparse
import tempfile

from measure import Limits, median, progress, spread, table
from producing import BY_HAND, COLUMNS, PRINCIPALS, THROUGH, VALUES, Producing
from sides import spent
from trigger_parts import PARTS, cost, without

RATE_LIMIT, BULK_LIMIT = 0.8, 3


def transactions(options, database, limits):
    """Rows per second of producers that enqueue beside those that insert by hand."""
    ways = {  # name: statement, where rows end up, whether the producer's change is with it, whether a worker is awake
        "by hand": (BY_HAND, "byhand", True, True),
        "awake": (THROUGH, "postbell", True, True),
        "asleep": (THROUGH, "postbell", True, False),
        "alone by hand": (BY_HAND, "byhand", False, True),
        "alone": (THROUGH, "postbell", False, True),
    }
    rows, alone = [], []
    for clients in options.producers:
        rounds = []
        for number in range(options.rounds):
            # who is first is last in the next round
            order = list(ways.items())[::-1 if number % 2 else 1]
            rounds.append({name: measured(options, database, clients, way) for name, way in order})
            progress(f"{clients} producers: round {number + 1} of {options.rounds}")
        for name in ("awake", "asleep"):
            rows.append(rate_row(clients, f"worker {name}", rounds, name, "by hand", limits))
        alone.append(rate_row(clients, "worker awake", rounds, "alone", "alone by hand", None))
    heads = ["producers", "worker", "rows/s by hand", "rows/s", "rows/s / by hand", "limit",
             "CPU µs/row by hand", "CPU µs/row", "CPU / by hand", "WAL bytes/row, by hand and ours"]
    print(f"\nA producer's change and one row in a transaction, median of {options.rounds} rounds (smallest–largest)\n")
    table(heads, rows)
    print("\nThe row alone, which commits by itself\n")
    table(heads, alone)


def measured(options, database, clients, way):
    statement, schema, with_change, is_awake = way
    database.sleep()
    if is_awake:
        database.awake()
    return database.produce(clients, options.seconds, statement, schema, with_change)


def rate_row(clients, what, rounds, ours, theirs, limits):
    def both(figure):
        return [[getattr(one[name], figure) for one in rounds] for name in (theirs, ours)]

    (hand_rates, rates), (hand_cpu, cpu), (hand_wal, wal) = both("rate"), both("cpu"), both("wal")
    # of each round's pair, because the machine's speed changes between rounds
    ratios = [own / hand for hand, own in zip(hand_rates, rates)]
    limit = ""
    if limits and ours == "awake":
        limit = limits.least(f"rows per second of {clients} producers / by hand", median(ratios), RATE_LIMIT)
    return [clients, what, f"{median(hand_rates):.0f}", f"{median(rates):.0f}", spread(ratios), limit,
            f"{median(hand_cpu):.0f}", f"{median(cpu):.0f}", spread([own / hand for hand, own in zip(hand_cpu, cpu)]),
            f"{median(hand_wal):.0f}, {median(wal):.0f}"]


def parts(options, database):
    """What a row costs less without each part."""
    database.awake()
    rounds = []
    for _ in range(3 * options.rounds):
        one = {"by hand": cost(database, BY_HAND, options.rows), "whole": cost(database, THROUGH, options.rows)}
        for part in PARTS:
            with without(database, part):
                one[part] = cost(database, THROUGH, options.rows)
        database.sleep()
        one["asleep"] = cost(database, THROUGH, options.rows)
        database.awake()
        rounds.append(one)
    progress("parts: measured")
    whole = median(one["whole"] for one in rounds)
    print(f"\nParts of enqueueing one row, backend CPU µs/row, median of {len(rounds)} rounds (smallest–largest)\n")
    rows = [["the same rows by hand", spread([one["by hand"] for one in rounds]), ""],
            ["through the triggers", spread([one["whole"] for one in rounds]), "100 %"]]
    for part in PARTS:
        saved = [one["whole"] - one[part] for one in rounds]
        rows.append([f"of it {part}", spread(saved), f"{100 * median(saved) / whole:.0f} %"])
    asleep = [one["asleep"] - one["whole"] for one in rounds]
    rows.append(["more while no worker is awake", spread(asleep), f"{100 * median(asleep) / whole:.0f} %"])
    table(["what", "µs/row", "share"], rows)


def bulk(options, database, limits):
    """Many rows in one statement beside a bare insert of the very rows that came of it."""
    run = database.admin.execute
    database.awake()
    database.empty()
    given = VALUES.format(person=f"(1 + n % {PRINCIPALS})", key="hashint8extended(n, 0)", **database.constants)
    run(f"CREATE TABLE app.given ({COLUMNS}) AS SELECT {given} FROM generate_series(1, {options.bulk}) n")
    run("GRANT SELECT ON app.given TO bench_producer")
    through = f"INSERT INTO postbell.outbox ({COLUMNS}) SELECT * FROM app.given ON CONFLICT DO NOTHING"
    statement_cost(database, through, options.bulk)
    run("CREATE TABLE app.stored AS SELECT * FROM postbell.outbox ORDER BY id")
    run("GRANT SELECT ON app.stored TO bench_producer")
    run("VACUUM (ANALYZE) app.given, app.stored")
    bare = "INSERT INTO byhand.outbox SELECT * FROM app.stored ON CONFLICT DO NOTHING"
    pairs = [[statement_cost(database, text, options.bulk) for text in (bare, through)]
             for _ in range(2 * options.rounds)]
    progress("bulk: measured")
    ratios = [ours / theirs for theirs, ours in pairs]
    theirs, ours = (median(side) for side in zip(*pairs))
    print(f"\n{options.bulk} rows in one statement, backend CPU µs/row, median of {len(pairs)} rounds "
          "(smallest–largest)\n")
    table(["bare insert of the same rows", "through the triggers", "ours / bare", "limit"], [
        [f"{theirs:.1f}", f"{ours:.1f}", spread(ratios),
         limits.most(f"bulk of {options.bulk} rows / bare insert", median(ratios), BULK_LIMIT)]])


def statement_cost(database, text, rows):
    database.empty()
    before = spent(database.producer)
    made = database.producer.execute(text).rowcount
    if made != rows:
        raise ValueError(f"{made} rows were inserted in the place of {rows}")
    return (spent(database.producer) - before) / rows


def numbers(text):
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise ValueError("none of them may be less than one")
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                        allow_abbrev=False)
    arguments.add_argument("--server", required=True)
    arguments.add_argument("--pgbench", required=True)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--producers", type=numbers, default=[1, 16, 32])
    arguments.add_argument("--seconds", type=float, default=1.5)
    arguments.add_argument("--rows", type=int, default=1000)
    arguments.add_argument("--bulk", type=int, default=20_000)
    options = arguments.parse_args()
    limits = Limits()
    with tempfile.TemporaryDirectory() as folder:
        database = Producing(options.server, options.pgbench, folder)
        try:
            bulk(options, database, limits)
            parts(options, database)
            transactions(options, database, limits)
        finally:
            database.close()
    limits.finish()


main()
