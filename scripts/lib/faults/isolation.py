"""One lane whose packets are dropped and one that is answered slowly: what they cost a third."""

import statistics
import threading
import time

from dropping import BlackHole, hindrance
from stand import KEY, TEAM, TOPIC, Stand, cpu_seconds, say

SCENARIO = ["apns slow 2s topic com.example.slow"]
FAKE = ["--fcm", "127.0.0.1:0", "--token-endpoint", "127.0.0.1:0", "--make-account"]
ROUNDS, SECONDS, RATE = 7, 20, 300
FACTOR = 1.5
# Shorter than they are by default, so that a run sees requests, connections and new connections run out of time.
SETTINGS = {"POSTBELL_REQUEST_TIMEOUT": "5s", "POSTBELL_CONNECT_TIMEOUT": "3s", "POSTBELL_PING_AFTER": "5s",
            "POSTBELL_PING_TIMEOUT": "2s"}
WARM_UP = 200

# From enqueued to answered, of those accepted: their number, and the 99th percentile in milliseconds.
LATENCY = """
SELECT count(*), 1000 * percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM
    d.attempted_at + d.answer_us * interval '1 microsecond' - o.created_at))
FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
WHERE d.outcome = 0 AND o.dedupe_key LIKE %(lane)s || '-%%-' || %(run)s AND d.answer_us >= %(least)s
"""
WAITING = """
SELECT count(*) FROM postbell.places p JOIN postbell.outbox o ON o.id = p.notification_id
WHERE o.principal_id LIKE %(lane)s || '-%%'
"""
FORGET = """
DELETE FROM postbell.queue WHERE notification_id IN
    (SELECT id FROM postbell.outbox WHERE principal_id NOT LIKE 'good-%')
"""


class Run:
    """What one run came to: p99 in milliseconds, CPU seconds of the worker, lateness of the machine in milliseconds,
    packets dropped (SYN, others), pushes of the slow lane that took two seconds."""

    def __init__(self, p99, cpu, late, dropped=(0, 0), slow=0):
        self.p99, self.cpu, self.late, self.dropped, self.slow = p99, cpu, late, dropped, slow

    def __str__(self):
        return f"p99 {self.p99:.0f} ms, CPU {self.cpu:.1f} s, machine late by {self.late:.1f} ms"


class Lateness:
    """`with Lateness() as machine`: how late the machine lets a thread run that only sleeps, which tells a run beside
    other work from one that has the machine to itself. `machine.p99` in milliseconds."""

    def __enter__(self):
        self.found, self.ended = [], threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self):
        began = time.monotonic()
        while not self.ended.wait(0.005):
            self.found.append(1000 * (time.monotonic() - began - 0.005))
            began = time.monotonic()

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.p99 = statistics.quantiles(self.found, n=100)[98]


def run(options):
    reason = hindrance(options)
    if reason:
        print(f"isolation: NOT SHOWN, packets cannot be dropped: {reason}", flush=True)
        return [f"isolation: not shown: {reason}"]
    with Stand(options, "isolation", SCENARIO, *FAKE) as stand:
        for name, topic in (("good", TOPIC), ("slow", "com.example.slow")):
            stand.register(RATE * SECONDS, name=name, topic=topic)
        stand.register(RATE * SECONDS, name="hole", provider="fcm")
        stand.start_fake()
        with stand.worker(**settings(stand)) as worker:
            experiment = Experiment(stand, worker)
            runs = {"without": [], "with": []}
            for number in range(ROUNDS):
                # Each kind comes first in turn: what grows over time is no advantage of either.
                for kind in list(runs)[::-1 if number % 2 else 1]:
                    runs[kind].append(experiment.run(f"{kind}-{number}", beside=kind == "with"))
            (stand.folder / "runs").write_text("".join(f"{kind}: {run}\n" for kind in runs for run in runs[kind]))
    return report(runs, experiment.faults)


def report(runs, faults):
    def median(kind, value):
        return statistics.median(getattr(run, value) for run in runs[kind])

    without, with_them = median("without", "p99"), median("with", "p99")
    syn, other = (sum(run.dropped[index] for run in runs["with"]) for index in (0, 1))
    slow = sum(run.slow for run in runs["with"])
    if with_them > FACTOR * without:
        faults.append(f"p99 {with_them:.0f} ms, {with_them / without:.2f} times that without")
    if faults:
        faults += [f"{kind}: {run}" for kind in runs for run in runs[kind]]
    return say("isolation", f"p99 of a lane {with_them:.0f} ms beside a black-holed and a slow one, {without:.0f} ms "
               f"without, medians of {ROUNDS} interleaved runs ({with_them / without:.2f} times, at most {FACTOR}), "
               f"dropped {other} packets and {syn} SYN, slow answers {slow}, CPU of the worker "
               f"{median('with', 'cpu'):.1f} s and {median('without', 'cpu'):.1f} s, machine late by "
               f"{median('with', 'late'):.1f} ms and {median('without', 'late'):.1f} ms", faults)


def settings(stand):
    fake = stand.folder / "fake"
    return SETTINGS | {
        "POSTBELL_APNS_CREDENTIALS": "slow", "APNS_SLOW_KEY_FILE": str(fake / "apns.p8"), "APNS_SLOW_KEY_ID": KEY,
        "APNS_SLOW_TEAM_ID": TEAM, "APNS_SLOW_TOPIC": "com.example.slow",
        "FCM_SERVICE_ACCOUNT_FILE": str(fake / "service-account.json"),
        "POSTBELL_FCM_ENDPOINT": f"https://localhost:{stand.port('fcm')}",
        "POSTBELL_FCM_TOKEN_ENDPOINT": f"https://localhost:{stand.port('token')}"}


class Experiment:
    """Runs with and without the other lanes' trouble, one after the other; `faults` says what made one worthless."""

    def __init__(self, stand, worker):
        self.stand, self.worker, self.faults = stand, worker, []

    def run(self, name, beside):
        """All lanes have a connection that has served; then the packets of one are dropped, or nothing happens."""
        self.warm_up(f"{name}-warm")
        if not beside:
            return self.measure(name, ["good"])
        with BlackHole(self.stand.port("fcm")) as hole:
            run = self.measure(name, ["good", "hole", "slow"])
            run.dropped = hole.dropped()
            got_through, _ = self.latency("hole", name)
        run.slow, _ = self.latency("slow", name, least=2_000_000)
        if got_through:
            self.faults.append(f"{name}: {got_through} pushes of the black-holed lane were accepted")
        if not all(run.dropped) or not run.slow:
            self.faults.append(f"{name}: dropped {run.dropped[1]} packets and {run.dropped[0]} SYN, "
                               f"{run.slow} slow answers: none of them may be 0")
        self.forget_others()
        return run

    def warm_up(self, name):
        for lane in ("good", "hole", "slow"):
            self.stand.enqueue(1, WARM_UP, lane, more=f"-{name}")
        for lane in ("good", "hole", "slow"):
            self.wait_until_settled(lane, 120)
            if self.latency(lane, name)[0] != WARM_UP:
                self.faults.append(f"{name}: lane {lane} was not well before the run")

    def measure(self, name, lanes):
        step, cpu = RATE // 10, cpu_seconds(self.worker.pid)
        began = time.monotonic()
        with Lateness() as machine:
            for turn in range(SECONDS * 10):
                for lane in lanes:
                    self.stand.enqueue(1 + turn * step, (turn + 1) * step, lane, more=f"-{name}")
                time.sleep(max(0.0, began + (turn + 1) / 10 - time.monotonic()))
        cpu = cpu_seconds(self.worker.pid) - cpu
        self.wait_until_settled("good", 60)
        accepted, p99 = self.latency("good", name)
        if accepted != RATE * SECONDS:
            self.faults.append(f"{name}: {accepted} of {RATE * SECONDS} pushes of the good lane were accepted")
        return Run(float(p99 or 0), cpu, machine.p99)

    def latency(self, lane, name, least=0):
        return self.stand.watcher.execute(LATENCY, {"lane": lane, "run": name, "least": least}).fetchone()

    def wait_until_settled(self, lane, seconds):
        end = time.monotonic() + seconds
        while self.stand.watcher.execute(WAITING, {"lane": lane}).fetchone()[0] and time.monotonic() < end:
            time.sleep(0.1)

    def forget_others(self):
        """What the other lanes still hold must not run into the next run."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            self.stand.watcher.execute(FORGET)
            if not any(self.stand.watcher.execute(WAITING, {"lane": lane}).fetchone()[0] for lane in ("hole", "slow")):
                return
            time.sleep(0.5)
        self.faults.append("what the other lanes held did not end within 60 s")
