"""What a fault of the database happens to: a server of its own, a provider, two workers and a load, and four witnesses
afterwards."""

import collections
import copy
import datetime
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from cluster import Cluster
from hygiene import OLDEST, Hygiene
from stand import ENDS_WITH_US, ROLE, Stand, cpu_seconds, one, say, wait_until  # noqa: F401

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "soak"))
import witnesses  # noqa: E402

PEOPLE, RATE = 200, 80
# The shortest lease, and requests that end well within it.
SETTINGS = {"POSTBELL_LEASE": "5s", "POSTBELL_REQUEST_TIMEOUT": "2s", "POSTBELL_CONCURRENCY": "100",
            "POSTBELL_RETRY": "1s,1s,1s,1s"}
LIMIT = 120  # seconds for all to be settled once the fault is over
WARNING = re.compile(r'level=(?:warning|error) .*?msg=("(?:[^"\\]|\\.)*"|\S+)')


class Scene(Stand):
    """`with Scene(options, name) as scene`: everything up, workers and load too, and gone afterwards. `wire` makes
    what stands between the workers and the server; the load never goes through it."""

    workers_wanted = 2

    def __init__(self, options, name, scenario=("apns delay 50ms",), rate=RATE, settings=None, wire=None):
        super().__init__(copy.copy(options), name, list(scenario))
        self.rate, self.settings, self.wire = rate, SETTINGS | (settings or {}), wire
        self.primary = Cluster(options, name, self.folder / "postgresql.log")
        self.clusters, self.running = [self.primary], []
        self.load, self.hygiene, self.faults = None, None, []

    # Up and down

    def __enter__(self):
        try:
            self.primary.create()
            self.primary.start()
            self.options.server = self.primary.connection()
            super().__enter__()
            self.register_devices()
            self.start_fake()
            self.prepare()
            if self.wire:
                self.wire = self.wire(self.primary.path()).__enter__()
            self.hygiene = Hygiene(self.connect_watcher, ROLE)
            self.running = [self.start_worker() for _ in range(self.workers_wanted)]
            self.begin()
            return self
        except BaseException:
            self.__exit__()
            raise

    def register_devices(self):
        self.register(PEOPLE)

    def prepare(self):
        """For those who need more than one server or other roles, before the workers start."""

    def begin(self):
        """The workers have been started: gives them work, and waits until both are at it."""
        self.start_load()
        wait_until("both workers are at work", lambda: all(worker.pid for worker in self.running) and one(
            self.watcher, "SELECT count(DISTINCT worker_no) FROM postbell.deliveries") == 2, 60)

    def __exit__(self, *_):
        if self.hygiene:
            self.hygiene.end()
        for process in [self.load, self.fake, *(worker.process for worker in self.running)]:
            if process and process.poll() is None:
                process.kill()
                process.wait()
        if self.wire and not callable(self.wire):
            self.wire.__exit__()
        for cluster in self.clusters:
            cluster.stop()

    def start_worker(self):
        return self.worker(DATABASE_URL=self.worker_connection(), **self.settings)

    def worker_connection(self):
        """As a worker finds the database."""
        if self.wire:
            return f"host=127.0.0.1 port={self.wire.port} user={ROLE} dbname={self.database}"
        return self.connection(ROLE)

    def load_connection(self):
        # The load goes on when the server is set to be read-only: its producers write all the same.
        return self.connection() + " options='-c default_transaction_read_only=off'"

    def start_load(self):
        with open(self.folder / "committed", "wb") as committed, open(self.folder / "producer.log", "wb") as log:
            self.load = subprocess.Popen(
                [*ENDS_WITH_US, sys.executable, Path(__file__).with_name("producer.py"), self.load_connection(),
                 str(self.rate), str(PEOPLE)], stdin=subprocess.DEVNULL, stdout=committed, stderr=log)

    def end_sessions(self):
        """Ends all sessions of the workers; answers how many."""
        return self.watcher.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [ROLE]).rowcount

    def connect_watcher(self):
        """A session of the superuser's on the server that is the primary now."""
        return psycopg.connect(self.primary.connection(database=self.database), autocommit=True, connect_timeout=2)

    def look(self):
        """A new session of the watcher, after the server or the session has ended."""
        self.watcher.close()
        self.options.server = self.primary.connection()
        self.watcher = psycopg.connect(self.connection(), autocommit=True)

    # While it goes on

    def printed(self):
        """What the producer has printed, one dictionary for each committed notification."""
        with open(self.folder / "committed", "rb") as file:
            return [json.loads(line) for line in file if line.endswith(b"\n")]

    def committed(self):
        """Notification to person."""
        return {line["id"]: line["person"] for line in self.printed()}

    def committed_at(self):
        """Notification to the time at which the producer heard of its commit."""
        return {line["id"]: line["at"] for line in self.printed()}

    def arrivals(self):
        return witnesses.read_arrivals(self.folder / "requests.jsonl", 0)

    def requests_between(self, begin, end):
        return sum(begin <= arrival.at < end for arrival in self.arrivals())

    def first_request_after(self, instant, limit):
        """Seconds from `instant` to the next request at the provider; None when there is none within `limit`."""
        while time.time() < instant + limit:
            later = [arrival.at for arrival in self.arrivals() if arrival.at >= instant]
            if later:
                return min(later) - instant
            time.sleep(0.1)
        return None

    def check_recovery(self, what, seconds, limit):
        """How long it took, as text; a fault when it took longer."""
        if seconds is None or seconds > limit:
            self.faults.append(f"{what}: {'never' if seconds is None else f'{seconds:.1f} s'}, at most {limit} s")
        return "never" if seconds is None else f"{seconds:.1f} s"

    def log_lines(self, number=None):
        """Lines of the workers' logs that are warnings or errors: (seconds since 1970, message, line)."""
        lines = []
        for log in sorted(self.folder.glob(f"worker-{number or '*'}.log")):
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
                found = WARNING.search(line)
                if found:
                    lines.append((instant(line), found[1].strip('"'), line))
        return lines

    def said(self, text, number):
        """When a worker's log had this text, at any level."""
        log = (self.folder / f"worker-{number}.log").read_text(encoding="utf-8", errors="replace")
        return [instant(line) for line in log.splitlines() if text in line]

    def logged(self, text):
        """How many warnings hold this text."""
        return sum(text in line for _, _, line in self.log_lines())

    def check_log_rate(self, begin, end):
        """Highest number of warnings of one kind, a worker and second of the fault; a fault above 1."""
        highest, kind = 0.0, "none"
        for number in range(1, self.workers + 1):
            kinds = collections.Counter(text for at, text, _ in self.log_lines(number) if begin <= at < end)
            for text, count in kinds.items():
                if count / (end - begin) > highest:
                    highest, kind = count / (end - begin), text
        if highest > 1:
            self.faults.append(f"{highest:.1f} warnings a second: {kind}")
        return f"{highest:.2f} warnings of a kind per worker and second"

    # The end

    def finish(self, fired, more, excuse=None, gone=frozenset(), deadlocks=0, oldest=OLDEST):
        """Ends the load, waits until all is settled, joins the witnesses and prints the lines; answers faults.
        `fired` says how often what happened; `gone` are ids that were lost with a database, see Verdict for `excuse`;
        `deadlocks` may have happened and a worker's transaction be `oldest` seconds old."""
        self.load.send_signal(signal.SIGTERM)
        self.load.wait(30)
        began = time.monotonic()
        left = self.wait_until_settled(LIMIT)
        seconds = time.monotonic() - began
        self.end_workers()
        if left:
            self.faults.append(f"{left} rows still wait")
        committed = {name: person for name, person in self.committed().items() if name not in gone}
        arrivals = [arrival for arrival in self.arrivals() if arrival.apns_id not in gone]
        verdict = self.judge(excuse, committed, arrivals, gone)
        if not fired or not all(fired.values()):
            self.faults.append(f"the fault did not happen: {fired}")
        causes = ", ".join(f"{cause} {count}" for cause, count in sorted(verdict.by_cause.items())) or "none to explain"
        names = ", ".join(f"fault {name} fired {count} times" for name, count in fired.items())
        faults = say(self.name, f"committed {verdict.committed}, settled {verdict.settled}, accepted "
                     f"{verdict.accepted}, duplicate {verdict.duplicate} ({causes}), unexplained "
                     f"{verdict.unexplained}, unknown {verdict.unknown}, superseded {verdict.late}, lost "
                     f"{verdict.lost}, {names}, {more}, all settled {seconds:.1f} s later", self.faults)
        return faults + self.say_hygiene(deadlocks, oldest)

    def say_hygiene(self, deadlocks=0, oldest=OLDEST):
        """The line of what the workers' sessions cost everybody else; answers faults."""
        numbers, unclean = self.hygiene.report(deadlocks, oldest)
        return say(f"{self.name}, hygiene", numbers, unclean)

    def end_workers(self):
        for worker in self.running:
            worker.process.send_signal(signal.SIGTERM)
        for worker in self.running:
            if worker.process.wait(30) != 0:
                self.faults.append(f"a worker ended with {worker.process.returncode} after SIGTERM")

    def judge(self, excuse, committed, arrivals, gone):
        devices, tokens = {}, {}
        for person, device, token in self.watcher.execute(
                "SELECT principal_id, device_no, token FROM postbell.devices"):
            devices.setdefault(person, []).append(device)
            tokens[token] = device
        statuses = dict(self.watcher.execute("SELECT id::text, status FROM postbell.notifications").fetchall())
        verdict = witnesses.Verdict({name: devices[person] for name, person in committed.items()}, tokens, statuses,
                                    [row for row in witnesses.read_ledger(self.watcher)
                                     if row.notification not in gone], arrivals,
                                    excuse or (lambda first, second: None))
        self.faults += verdict.faults
        self.faults += [f"audit: {fault} {name} {detail}" for fault, name, detail in
                        self.watcher.execute("SELECT * FROM postbell.audit()").fetchall()
                        # What was sent and lost with the database is on the ledger all the same, as it should be.
                        if not (fault == "ledger_orphan" and str(name) in gone)]
        unheard = statuses.keys() - committed.keys() - gone
        if unheard:
            self.faults.append(f"the outbox has {len(unheard)} rows that the producer never heard of")
        return verdict


def instant(line):
    """The time at the beginning of a log line, seconds since 1970."""
    found = re.search(r"\d{4}-\d\d-\d\dT[\d:.]+Z", line)
    return datetime.datetime.fromisoformat(found[0].replace("Z", "+00:00")).timestamp() if found else 0.0
