"""A load of very many rows that is enqueued in bulk while it is sent, and a census of it afterwards."""

import time

from bulk import Bulk
from census import Census
from scene import Scene, one, say, witnesses

PRODUCERS = 2
EMPTY = "SELECT NOT EXISTS (SELECT FROM postbell.queue) AND NOT EXISTS (SELECT FROM postbell.leases)"
# As they come, for a connection that keeps none of them.
LEDGER = "COPY (SELECT notification_id, postbell.outcome_name(outcome) FROM postbell.deliveries) TO STDOUT"
ENDS = "COPY (SELECT id, status FROM postbell.notifications) TO STDOUT"
AUDITED = "SELECT notifications, deliveries FROM postbell.audit_scope()"


class Sized(Scene):
    """`enqueue` is the statement of Bulk. Instead of a load without end there are `rows`, from two producers."""

    def __init__(self, options, name, scenario, enqueue, settings=None):
        super().__init__(options, name, scenario, settings=settings)
        self.rows, self.enqueue_rows, self.producers = options.rows, enqueue, []

    def start_load(self):
        part = -(-self.rows // PRODUCERS)
        for number in range(PRODUCERS):
            producer = Bulk(self.connection(), self.enqueue_rows, 1 + number * part,
                            min(self.rows, (number + 1) * part), self.folder / f"committed-{number}")
            self.producers.append(producer)
            producer.start()

    def __exit__(self, *_):
        for producer in self.producers:
            producer.end()
        super().__exit__()

    def wait_until_sent(self, seconds):
        """Until all is enqueued and nothing waits or is in flight; answers how long each took, in seconds."""
        began, enqueued = time.monotonic(), None
        while time.monotonic() < began + seconds:
            self.lives()
            if enqueued is None and all(producer.is_done() for producer in self.producers):
                enqueued = time.monotonic() - began
            if enqueued is not None and all(worker.pid for worker in self.running) and one(self.watcher, EMPTY):
                return enqueued, time.monotonic() - began
            time.sleep(1)
        self.faults.append(f"rows still wait or are in flight after {seconds} s")
        return enqueued or seconds, time.monotonic() - began

    def census(self):
        """Ends the workers and joins the witnesses: the producers' files, the provider's log, ledger and outbox."""
        self.end_workers()
        census = Census()
        for producer in self.producers:
            with open(producer.path, encoding="utf-8") as file:
                for line in file:
                    name, deadline = line.split()
                    census.commit(name, float(deadline))
        if census.committed != self.rows:
            self.faults.append(f"{census.committed} rows were committed, {self.rows} were to be")
        for arrival in witnesses.each_arrival(self.folder / "requests.jsonl"):
            census.arrive(arrival.apns_id, arrival.at, arrival.accepted)
        # Their sizes are not what the planner last heard.
        self.watcher.execute("ANALYZE")
        for name, outcome in self.copied(LEDGER):
            census.row(name, outcome)
        for name, status in self.copied(ENDS):
            census.end(name, status)
        self.faults += census.judge()
        return census

    def copied(self, query):
        with self.watcher.cursor() as cursor, cursor.copy(query) as copy:
            yield from copy.rows()

    def audit(self):
        """How much postbell.audit() has looked at, as text; what it finds is a fault."""
        self.faults += [f"audit: {fault} {name} {detail}" for fault, name, detail in
                        self.watcher.execute("SELECT * FROM postbell.audit() LIMIT 20").fetchall()]
        notifications, deliveries = self.watcher.execute(AUDITED).fetchone()
        return f"audited {notifications} notifications and {deliveries} ledger rows"

    def say(self, text):
        """The line, and that of the hygiene; answers faults."""
        return say(self.name, text, self.faults) + self.say_hygiene()
