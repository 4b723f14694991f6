"""A producer of the crash matrix: enqueues in transactions of which some roll back, and keeps each committed id."""

import threading
import time

import psycopg

PEOPLE, ROWS, SECONDS = 60, 150, 1.5
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, urgency, expires_at, payload)
SELECT 'person-' || (1 + g * 7 %% %(people)s), 'crash', 'crash:' || g, 'run:' || g,
    CASE WHEN g %% 3 = 0 THEN 'bulk' END,
    CASE WHEN g %% 31 = 0 THEN now() + interval '300 ms' END,
    '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(%(first)s::int, %(last)s::int) g
RETURNING id::text, principal_id, subject, expires_at < now() + interval '1 minute'
"""


class Producer(threading.Thread):
    """Stops by itself when all rows are committed."""

    def __init__(self, connection, draws):
        super().__init__(daemon=True)
        # A generator of its own: what it draws must not depend on what the round draws meanwhile.
        self.connection, self.draws = connection, type(draws)(draws.random())
        self.committed, self.superseded, self.failure = {}, set(), None

    def run(self):
        try:
            with psycopg.connect(self.connection) as session:
                self.enqueue(session)
        except Exception as failure:  # whoever waits for the rows says so
            self.failure = failure

    def enqueue(self, session):
        began, number = time.monotonic(), 0
        while len(self.committed) < ROWS:
            count = min(self.draws.randint(1, 20), ROWS - len(self.committed))
            rows = session.execute(ENQUEUE, {"people": PEOPLE, "first": number + 1, "last": number + count}).fetchall()
            number += count
            over = {subject for _, _, subject, _ in rows if self.draws.random() < 0.05}
            if self.draws.random() < 0.1:
                session.rollback()
                continue
            session.commit()
            self.committed.update({row[0]: row[1:] for row in rows})
            if self.draws.random() < 0.3:
                for subject in over:
                    session.execute("SELECT postbell.supersede('default', %s)", [subject])
                session.commit()
                self.superseded |= over
            time.sleep(max(0.0, began + SECONDS * len(self.committed) / ROWS - time.monotonic()))

    def is_done(self):
        if self.failure:
            raise self.failure
        return not self.is_alive()

    def ends(self):
        """Each committed id: its person, and the statuses in which it may end."""
        ends = {}
        for name, (person, subject, is_short) in self.committed.items():
            allowed = {"dispatched"}
            if subject in self.superseded:
                allowed.add("superseded")
            if is_short:
                allowed.add("expired")
            ends[name] = (person, allowed)
        return ends
