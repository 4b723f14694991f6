"""What the workers' sessions cost everybody else on the server, sampled ten times a second."""

import threading
import time

import psycopg

from transactions import Transactions

SESSIONS = r"""
SELECT pid, state, extract(epoch FROM clock_timestamp() - xact_start)::float8,
    concat_ws(' ', state, wait_event_type, wait_event, left(regexp_replace(query, '\s+', ' ', 'g'), 60))
FROM pg_stat_activity
WHERE usename = %(role)s AND datname = current_database() AND xact_start IS NOT NULL
"""
SERVER = """
SELECT pg_notification_queue_usage(),
    (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())
"""
OLDEST, QUEUE = 1.0, 0.001  # seconds of a transaction of ours; share of the queue of notifications


class Hygiene(threading.Thread):
    """Samples while a scene lasts; `connect` makes a session of the watcher, for sessions of `role`."""

    def __init__(self, connect, role):
        super().__init__(daemon=True)
        self.connect, self.role, self.ended = connect, role, threading.Event()
        self.samples, self.queue, self.deadlocks, self.transactions = 0, 0.0, 0, Transactions()
        self.start()

    def run(self):
        session = None
        while not self.ended.wait(0.1):
            try:
                if session is None:
                    session = self.connect()
                queue, deadlocks = session.execute(SERVER).fetchone()
                sessions = session.execute(SESSIONS, {"role": self.role}).fetchall()
            except psycopg.Error:
                session = None
                continue
            self.samples += 1
            self.transactions.sample(time.monotonic(), sessions)
            self.queue, self.deadlocks = max(self.queue, queue), max(self.deadlocks, deadlocks)

    def end(self):
        self.ended.set()
        self.join(10)

    def report(self, allowed_deadlocks, oldest):
        """What was seen, as text, and the faults."""
        self.end()
        faults, seen = [], self.transactions
        if not self.samples:
            faults.append("no sample was taken")
        if seen.oldest > oldest:
            faults.append(f"a transaction of a worker was {seen.oldest:.1f} s old, at most {oldest:g} s: {seen.what}")
        if seen.idle:
            faults.append(f"{seen.idle} samples found a worker's session idle in transaction")
        if self.queue > QUEUE:
            faults.append(f"the queue of notifications was {100 * self.queue:.2f} % full")
        if self.deadlocks > allowed_deadlocks:
            faults.append(f"{self.deadlocks} deadlocks")
        return (f"samples {self.samples}, oldest transaction of a worker {seen.oldest:.2f} s (at most {oldest:g}), "
                f"idle in transaction {seen.idle}, queue of notifications {100 * self.queue:.4f} % full at most, "
                f"deadlocks {self.deadlocks}", faults)
