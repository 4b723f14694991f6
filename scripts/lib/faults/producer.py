#!/usr/bin/env python3
"""Commits notifications at a rate and prints each committed id, the moment the server has said so.

    producer.py CONNECTION RATE PEOPLE

A line is JSON: id, person, and the time of the answer. What the server did not answer is asked for again under the same
dedupe key, so a notification that was committed unheard is printed later. Ends at SIGTERM, after its transaction.
"""

import json
import signal
import sys
import time

import psycopg

FIND = "SELECT id::text, principal_id FROM postbell.outbox WHERE dedupe_key = ANY (%(keys)s)"
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT 'p-' || (1 + g %% %(people)s), 'fault', 'load-' || g, 'run:' || g,
    '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM unnest(%(numbers)s::int[]) g
RETURNING id::text, principal_id
"""


class Producer:
    def __init__(self, connection, rate, people):
        self.connection, self.rate, self.people = connection, rate, people
        self.session, self.ended = None, False

    def end(self, *_):
        self.ended = True

    def run(self):
        number, began = 0, time.monotonic()
        while not self.ended:
            size = 1 + number % 13
            self.commit(list(range(number + 1, number + size + 1)))
            number += size
            # What an outage has kept back is not made up for.
            began = max(began, time.monotonic() - number / self.rate - 1)
            time.sleep(max(0.0, began + number / self.rate - time.monotonic()))

    def commit(self, numbers):
        repeated = False
        while not self.ended or repeated:
            try:
                if self.session is None:
                    self.session = psycopg.connect(self.connection, connect_timeout=2)
                rows = self.attempt(numbers, repeated)
                for name, person in rows:
                    print(json.dumps({"id": name, "person": person, "at": time.time()}), flush=True)
                return
            except psycopg.Error as failure:
                repeated = repeated or self.session is not None
                self.session = None if self.session is None or self.session.closed else self.roll_back()
                print(type(failure).__name__, str(failure).split("\n", 1)[0], file=sys.stderr, flush=True)
                time.sleep(0.05)

    def attempt(self, numbers, repeated):
        rows = []
        if repeated:
            rows = self.session.execute(FIND, {"keys": [f"load-{number}" for number in numbers]}).fetchall()
        if not rows:
            rows = self.session.execute(ENQUEUE, {"numbers": numbers, "people": self.people}).fetchall()
        self.session.commit()
        return rows

    def roll_back(self):
        try:
            self.session.rollback()
            return self.session
        except psycopg.Error:
            return None


producer = Producer(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
signal.signal(signal.SIGTERM, producer.end)
producer.run()
