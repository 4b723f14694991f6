"""One round: a database of its own, two workers, a producer, and the deaths of one of the workers."""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from worker import DONE, Worker, one, wait_until  # noqa: E402

import witnesses  # noqa: E402

PEOPLE = 300
SECOND_PHONE = 5  # every so many people have two phones
ROLES = ("soak_victim", "soak_survivor")
# The shortest lease that a worker accepts, and requests that end well within it.
SETTINGS = {"POSTBELL_LEASE": "5s", "POSTBELL_REQUEST_TIMEOUT": "2s", "POSTBELL_CONCURRENCY": "100",
            "POSTBELL_RETRY": "1s,1s,1s,1s", "POSTBELL_LOG_LEVEL": "info"}
LIMIT = 180  # seconds for all to be settled

CATALOG = """
SELECT postbell.define_kind('soak', presentation => 'template', payload => '{"run_id": "uuid!"}',
    content => '{"title": "Run finished", "body": "Open the app to see the result", "container": "soak"}')
"""
REGISTER = """
SELECT postbell.device_register(%(person)s, %(phone)s, 'apns', %(topic)s, %(token)s, 'production')
"""
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT 'person-' || (1 + g %% %(people)s), 'soak', 'soak:' || g, 'run:' || g,
       '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(%(first)s::int, %(last)s::int) g
RETURNING id::text, principal_id
"""
LEASES = """
SELECT l.ids[t.pos]::text, t.dev
FROM postbell.leases l
JOIN postbell.workers w USING (owner)
CROSS JOIN LATERAL unnest(l.t_pos, l.t_dev) t(pos, dev)
WHERE w.name LIKE '%%/' || %(pid)s AND get_bit(l.open, t.pos - 1) = 1
    AND NOT EXISTS (
        SELECT FROM postbell.deliveries d
        WHERE d.notification_id = l.ids[t.pos] AND d.device_no = t.dev AND d.batch = l.batch)
"""


# A worker that has sent and written something and holds more of it.
WORKS = """
SELECT EXISTS (
        SELECT FROM postbell.deliveries d JOIN postbell.workers w USING (worker_no) WHERE w.name LIKE '%%/' || %(pid)s)
    AND EXISTS (
        SELECT FROM postbell.leases l JOIN postbell.workers w USING (owner) WHERE w.name LIKE '%%/' || %(pid)s)
"""


class Producer(threading.Thread):
    """Commits rows at a rate, in transactions of random length of which some roll back, and remembers what it
    committed: notification to person."""

    def __init__(self, connection, rows, rate, draws):
        super().__init__(daemon=True)
        self.connection, self.rows, self.rate, self.draws = connection, rows, rate, draws
        self.committed, self.failure = {}, None

    def run(self):
        try:
            with psycopg.connect(self.connection) as session:
                self.enqueue(session)
        except Exception as failure:  # whoever waits for the rows says so
            self.failure = failure

    def enqueue(self, session):
        started, number = time.monotonic(), 0
        while len(self.committed) < self.rows:
            count = min(self.draws.randint(1, 50), self.rows - len(self.committed))
            wanted = {"people": PEOPLE, "first": number + 1, "last": number + count}
            number += count
            rows = session.execute(ENQUEUE, wanted).fetchall()
            if self.draws.random() < 0.05:
                session.rollback()
                continue
            session.commit()
            self.committed.update(rows)
            time.sleep(max(0.0, started + len(self.committed) / self.rate - time.monotonic()))

    def has(self, rows):
        if self.failure:
            raise self.failure
        return len(self.committed) >= rows


class Round:
    """See `run`. Everything random in it comes from `seed`."""

    def __init__(self, options, number, seed):
        self.options, self.number, self.draws = options, number, random.Random(seed)
        self.database = f"soak_{os.getpid()}_{number}"
        self.deaths = []  # (instant, targets held) of each

    def connection(self, user="postgres"):
        return psycopg.conninfo.make_conninfo(self.options.server, dbname=self.database, user=user)

    def run(self):
        """Prints the round's line; answers what is wrong, one line each."""
        started = time.monotonic()
        with psycopg.connect(self.options.server, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {self.database}")
            try:
                return self.play(started)
            finally:
                admin.execute(f"DROP DATABASE {self.database} WITH (FORCE)")

    def play(self, started):
        offset = Path(self.options.requests).stat().st_size
        program = Path(self.options.programs) / "postbell"
        migrated = subprocess.run([program, "migrate"], env=dict(os.environ, DATABASE_URL=self.connection()),
                                  capture_output=True, text=True, check=False)
        if migrated.returncode != 0:
            sys.exit(f"the schema could not be made\n{migrated.stderr}")
        with psycopg.connect(self.connection(), autocommit=True) as watcher:
            self.prepare(watcher)
            producer = Producer(self.connection(), self.options.rows, self.options.rate,
                                random.Random(self.draws.random()))
            with self.worker(ROLES[1], "survivor") as survivor:
                victim = self.worker(ROLES[0], "victim-0")
                wait_until("both workers are up", lambda: victim.pid and survivor.pid and one(
                    watcher, "SELECT count(*) FROM postbell.workers") == 2, 30)
                producer.start()
                for death in range(1, self.options.kills + 1):
                    self.kill(victim, watcher, producer, death)
                    victim = self.worker(ROLES[0], f"victim-{death}")
                with victim:
                    wait_until("all rows are enqueued", lambda: producer.has(self.options.rows), LIMIT)
                    wait_until("all rows are settled",
                               lambda: victim.pid and survivor.pid and one(watcher, DONE), LIMIT)
            statuses = [worker.process.returncode for worker in (victim, survivor)]
            return self.judge(watcher, producer.committed, offset, statuses, time.monotonic() - started)

    def prepare(self, watcher):
        watcher.execute(CATALOG)
        for role in ROLES:
            if not one(watcher, f"SELECT count(*) FROM pg_roles WHERE rolname = '{role}'"):
                watcher.execute(f"CREATE ROLE {role} LOGIN IN ROLE postbell_dispatcher")
        for person in range(1, PEOPLE + 1):
            for phone in range(1, 3 if person % SECOND_PHONE == 0 else 2):
                # `fa003`: answered late, so that a death meets requests in flight
                token = f"fa003a{self.number:06x}{phone:02x}{person:050x}"
                watcher.execute(REGISTER, {"person": f"person-{person}", "phone": f"phone-{person}-{phone}",
                                           "topic": os.environ["APNS_TOPIC"], "token": token})

    def worker(self, role, name):
        log = Path(self.options.logs) / f"round-{self.number}-{name}.log"
        return Worker(Path(self.options.programs) / "postbell", log, DATABASE_URL=self.connection(role), **SETTINGS)

    def kill(self, victim, watcher, producer, death):
        """Kills the victim at a random moment of its part of the round, but not before it is at work."""
        share = (death - 1 + self.draws.random()) / self.options.kills * 0.9
        pause, pid = self.draws.uniform(0, 0.3), {"pid": victim.pid}
        wait_until("rows are enqueued", lambda: producer.has(share * self.options.rows), LIMIT)
        wait_until("the victim works", lambda: victim.pid and watcher.execute(WORKS, pid).fetchone()[0], LIMIT)
        time.sleep(pause)
        victim.process.kill()
        died = time.time()
        victim.process.wait()
        victim.log.close()
        # What its sessions were doing may still be carried out.
        wait_until("the victim's sessions end", lambda: not one(
            watcher, f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{ROLES[0]}'"), 10)
        self.deaths.append((died, watcher.execute(LEASES, pid).fetchall()))

    def judge(self, watcher, committed, offset, exits, seconds):
        devices, tokens = {}, {}
        for person, device, token in watcher.execute("SELECT principal_id, device_no, token FROM postbell.devices"):
            devices.setdefault(person, []).append(device)
            tokens[token] = device
        statuses = dict(watcher.execute("SELECT id::text, status FROM postbell.notifications").fetchall())
        arrivals = witnesses.read_arrivals(self.options.requests, offset)
        verdict = witnesses.Verdict({name: devices[person] for name, person in committed.items()}, tokens, statuses,
                                    witnesses.read_ledger(watcher), arrivals)
        met = [witnesses.in_flight_at(died, held, arrivals, tokens) for died, held in self.deaths]
        faults = verdict.faults
        faults += [f"kill {index} met nothing in flight" for index, count in enumerate(met, 1) if count == 0]
        faults += [f"a worker ended with {status} after SIGTERM" for status in exits if status != 0]
        faults += [f"audit: {fault} {name} {detail}" for fault, name, detail in
                   watcher.execute("SELECT * FROM postbell.audit()").fetchall()]
        if statuses.keys() != committed.keys():
            faults.append(f"the outbox has {len(statuses)} rows, {len(committed)} were committed")
        causes = ", ".join(f"{cause} {verdict.by_cause[cause]}" for cause in ("unknown", "lapsed"))
        print(f"round {self.number}: committed {verdict.committed}, settled {verdict.settled}, "
              f"accepted {verdict.accepted}, duplicate {verdict.duplicate} (explained by {causes}), "
              f"unexplained {verdict.unexplained}, unknown {verdict.unknown}, lost {verdict.lost}, "
              f"kills {len(met)} (in flight {', '.join(map(str, met))}), leases recovered {verdict.recovered}, "
              f"{'holds' if not faults else 'DOES NOT HOLD'}, {seconds:.1f} s", flush=True)
        return faults
