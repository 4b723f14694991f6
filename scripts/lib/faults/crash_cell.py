"""One round of the crash matrix: a database of its own, a producer, a worker to which something happens at a named
step, and one that takes over."""

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import psycopg

import crash_judge
from crash_producer import Producer
from crash_steps import STEPS
from cut_claims import CutClaims
from stand import KEY, TEAM, TOPIC, Worker, one

LEASE = 5  # seconds: the shortest that a worker accepts
SETTINGS = {"POSTBELL_LEASE": f"{LEASE}s", "POSTBELL_REQUEST_TIMEOUT": "2500ms", "POSTBELL_STOP_TIMEOUT": "3s",
            "POSTBELL_CONCURRENCY": "20", "POSTBELL_POLL": "200ms", "POSTBELL_RETRY": ",".join(["1s"] * 12),
            "POSTBELL_APNS_5XX_DELAY": "1s", "POSTBELL_RETRY_BUDGET": "100%", "POSTBELL_LOG_LEVEL": "info"}
FIRES, SETTLES = 20, 60  # seconds: until it has happened; until all is settled after it
# Requests that a worker has made into frames go out when it goes on.
IN_HAND = {"request-framed"}
# The beginning of tokens whose answers are late (docs/fake-providers.md); those of crash.py.
SLOW = "fa0032aa"
AT_WORK = "SELECT count(*) > 5 FROM postbell.deliveries"
LEDGER = """
SELECT id, notification_id::text, device_no, batch::text, postbell.outcome_name(outcome), reason, final, late,
    provider_status
FROM postbell.deliveries ORDER BY id
"""
LEASES = """
SELECT batch::text, extract(epoch FROM claimed_at)::float, extract(epoch FROM until)::float,
    extract(epoch FROM ended_at)::float, targets::text[], devices
FROM witness.leases ORDER BY claimed_at
"""


class Missed(Exception):
    """Something did not come to pass in time."""


class Cell:
    """`run` answers what is wrong, one line each. Everything random in it comes from `seed`."""

    def __init__(self, matrix, step, signal_name, seed, number):
        self.matrix, self.step, self.signal, self.seed, self.number = matrix, step, signal_name, seed, number
        self.draws = random.Random(f"{matrix.base}:{step}:{signal_name}:{seed}")
        self.arrival = self.draws.randint(1, STEPS[step].most)
        self.twice = signal_name == "TERM" and self.draws.random() < 0.5
        self.mark = f"{number:08x}"  # in the tokens of this round
        self.folder = Path(matrix.folder) / f"{step}-{signal_name}-{seed}"
        self.folder.mkdir(mode=0o700)
        # Nothing of this round stands before it, and what all rounds left grows to gigabytes.
        self.log_start = matrix.log.stat().st_size if matrix.log.exists() else 0
        self.database = f"crash_{os.getpid()}_{number}"
        self.workers, self.exits, self.fired, self.faults = [], [], 0, []
        self.judgement = None

    @property
    def name(self):
        return f"{self.step} {self.signal} seed {self.seed}"

    def run(self):
        began = time.monotonic()
        with self.matrix.cloning:  # a template may have one user at a time
            with psycopg.connect(self.matrix.server, autocommit=True) as admin:
                admin.execute(f"CREATE DATABASE {self.database} TEMPLATE {self.matrix.template}")
        try:
            self.play()
        except Missed as miss:
            self.faults.append(str(miss))
        except Exception as failure:  # a round that breaks is one that does not hold
            self.faults.append(f"{type(failure).__name__}: {failure}")
        finally:
            for worker in self.workers:
                self.end(worker, signal.SIGKILL)
            with psycopg.connect(self.matrix.server, autocommit=True) as admin:
                admin.execute(f"DROP DATABASE {self.database} WITH (FORCE)")
        line = self.judgement.line if self.judgement else "not judged"
        print(f"{self.name}: {line}, fault {self.signal} at arrival {self.arrival} fired {self.fired} times, "
              f"{'holds' if not self.faults else 'DOES NOT HOLD'}, {time.monotonic() - began:.1f} s", flush=True)
        return self.faults

    # MARK: The round

    def play(self):
        with psycopg.connect(self.connection(), autocommit=True) as watcher:
            self.watcher = watcher
            # The fake counts what it does to a token, and all rounds share it.
            watcher.execute("UPDATE postbell.devices SET token = overlay(token PLACING %s FROM 9)", [self.mark])
            self.producer = Producer(self.connection(), self.draws)
            self.producer.start()
            victim = self.start_victim()
            self.let_it_happen(victim)
            self.wait("the producer is done", lambda: self.producer.is_done(), 30)
            self.wait("all is settled", lambda: one(watcher, "SELECT count(*) = 0 FROM postbell.places"), SETTLES)
            for worker in self.workers:
                if worker.process.poll() is None:
                    # One that begins to start is ended by the signal itself.
                    self.wait("the worker dispatches", lambda: "dispatching" in self.log(worker), 10)
                    self.end(worker, signal.SIGTERM)
                    self.require(worker.process.returncode == 0,
                                 f"a worker ended with {worker.process.returncode} after SIGTERM")
            self.judge()

    def start_victim(self):
        step = STEPS[self.step]
        settings = dict(step.settings, TEST_CRASH_AT=f"{self.step}:{self.arrival}:{self.signal}")
        if step.before == "heirs":
            ancestor = self.worker(TEST_CRASH_AT="request-written:3:KILL")
            self.wait("the first worker dies", lambda: ancestor.process.poll() is not None, FIRES)
        if step.before == "cut":
            self.cut = CutClaims(self.folder, self.matrix.server, self.draws.randint(2, 3))
            settings["DATABASE_URL"] = self.cut.connection(self.connection(self.matrix.role))
        victim = self.worker(**settings)
        if step.before in ("stop", "stop-twice"):
            self.wait("the worker works", lambda: one(self.watcher, AT_WORK), FIRES)
            if step.before == "stop-twice":
                # What is in flight otherwise may be answered before it is told again.
                self.wait("a slow answer is awaited", self.has_slow_request, FIRES)
            victim.process.send_signal(signal.SIGTERM)
            if step.before == "stop-twice":
                self.wait("it drains", lambda: "stopping: " in self.log(victim), 5)
                victim.process.send_signal(signal.SIGTERM)
        return victim

    def let_it_happen(self, victim):
        mark = f"crash point {self.step}: "
        self.wait(f"{self.step} is reached the {self.arrival}. time", lambda: mark in self.log(victim), FIRES)
        if self.signal == "KILL":
            self.require(victim.process.wait(5) == -signal.SIGKILL, "it was not killed")
            self.worker()
        elif self.signal == "STOP":
            self.wait("it is stopped", lambda: state(victim.process.pid) == "T", 5)
            stopped = time.monotonic()
            self.worker()
            # Longer than the lease, and until another has what it held.
            self.wait("its leases are recovered", lambda: time.monotonic() > stopped + LEASE + 1 and one(
                self.watcher, "SELECT NOT EXISTS (SELECT FROM postbell.leases WHERE until < now())"), 4 * LEASE)
            victim.process.send_signal(signal.SIGCONT)
        else:
            if self.twice:
                time.sleep(self.draws.uniform(0, 0.2))
                victim.process.send_signal(signal.SIGTERM)
            self.wait("it ends", lambda: victim.process.poll() is not None, 10)
            self.require(victim.process.returncode == 0, f"it ended with {victim.process.returncode}")
            held = one(self.watcher, "SELECT count(*) FROM postbell.leases")
            self.require(held == 0, f"it left {held} leases behind")
            self.worker()
        self.fired = self.log(victim).count(mark)

    def judge(self):
        devices, good, tokens = {}, {}, {}
        for person, device, token, is_good in self.watcher.execute(
                "SELECT principal_id, device_no, w.token, w.good FROM witness.devices w JOIN postbell.devices d "
                "USING (device_no)"):
            devices.setdefault(person, []).append(device)
            if is_good:
                good.setdefault(person, []).append(device)
            tokens[token] = device
        committed = {name: crash_judge.Enqueued(good.get(person, []), ends)
                     for name, (person, ends) in self.producer.ends().items()}
        statuses = dict(self.watcher.execute("SELECT id::text, status FROM postbell.notifications").fetchall())
        ledger = [crash_judge.Row(crash_judge.witnesses.uuid_time(row[0]), *row[1:])
                  for row in self.watcher.execute(LEDGER)]
        leases = [crash_judge.Lease(*row[:4], list(zip(*row[4:]))) for row in self.watcher.execute(LEASES)]
        violations = [row[0] for row in self.watcher.execute("SELECT what FROM witness.violations")]
        paused = self.signal == "STOP" and self.step in IN_HAND
        self.judgement = crash_judge.Judgement(
            committed, statuses, ledger, self.requests(tokens), leases, violations, paused)
        self.faults += self.judgement.faults
        self.faults += [f"audit: {fault} {name} {detail}" for fault, name, detail in
                        self.watcher.execute("SELECT * FROM postbell.audit()").fetchall()]
        self.require(self.fired == 1, f"the fault fired {self.fired} times")

    def has_slow_request(self):
        """Whether a token whose answers take `--slowness` was sent to."""
        with open(self.matrix.log, encoding="utf-8") as log:
            log.seek(self.log_start)
            return any(SLOW + self.mark in line for line in log)

    def requests(self, tokens):
        requests = []
        with open(self.matrix.log, encoding="utf-8") as log:
            log.seek(self.log_start)
            for line in log:
                if self.mark in line and line.endswith("\n"):
                    entry = json.loads(line)
                    token = entry["path"].rsplit("/", 1)[1]
                    if token[8:16] == self.mark:
                        headers = entry["headers"]
                        requests.append(crash_judge.Request(
                            crash_judge.seconds(entry["time"]), headers["apns-id"],
                            tokens[token[:8] + "0" * 8 + token[16:]], entry["status"],
                            headers.get("apns-collapse-id")))
        return requests

    # MARK: Workers

    def connection(self, user="postgres"):
        return psycopg.conninfo.make_conninfo(self.matrix.server, dbname=self.database, user=user)

    def worker(self, **settings):
        values = {"DATABASE_URL": self.connection(self.matrix.role), **self.matrix.provider, **SETTINGS, **settings}
        worker = Worker(str(self.matrix.program), self.folder / f"worker-{len(self.workers) + 1}.log", **values)
        self.workers.append(worker)
        return worker

    @staticmethod
    def log(worker):
        return Path(worker.log.name).read_text(encoding="utf-8", errors="replace")

    def end(self, worker, number):
        """Ends a worker of this round; one that does not obey within ten seconds is killed."""
        if worker.process.poll() is not None:
            return
        worker.process.send_signal(number)
        try:
            worker.process.wait(10)
        except Exception:
            worker.process.kill()
            worker.process.wait()
        worker.log.close()

    def wait(self, what, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise Missed(f"not within {seconds} s: {what}")
            time.sleep(0.03)

    def require(self, condition, fault):
        if not condition:
            self.faults.append(fault)


def state(pid):
    """The letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
