"""One row among a thousand kills every worker that it comes to, and it alone is set aside."""

import signal
import time
from pathlib import Path

from scene import Scene, one, say, wait_until, witnesses
from wire import Wire

POISON = "dead0000-0000-4000-8000-000000000000"  # the run that its payload names
RESTART = 5.0  # seconds, RestartSec= of the unit
LIMIT = 300
CRASHES = 5    # POSTBELL_MAX_CRASHES, by default
# The provider takes the poison's request and never answers it.
SILENT = "fa000a"
SCENARIO = [f"apns silence prefix {SILENT}", "apns slow 50ms"]
# So many waits that a target is never at its ceiling before its row has killed enough.
SETTINGS = {"POSTBELL_RETRY": ",".join(["1s"] * 20)}
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT CASE WHEN g = %(poison)s THEN 'poison-1' ELSE 'p-' || g END, 'fault', 'poison-' || g, 'run:' || g,
    CASE WHEN g = %(poison)s THEN '{"run_id": "' || %(mark)s || '"}'
        ELSE '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}' END
FROM generate_series(1, %(rows)s::int) g
RETURNING id::text, principal_id
"""
CRASHED = "SELECT route_no IS NOT NULL, status, reason FROM postbell.settlements WHERE notification_id = %s"
# The process that holds a notification on lease.
HOLDER = """
SELECT split_part(w.name, '/', 2)::int FROM postbell.leases l JOIN postbell.workers w USING (owner)
WHERE l.until > now() AND %(id)s = ANY (l.ids)
"""


class PoisonedWire(Wire):
    """`victim`, the worker behind it, is killed the moment the answer to a claim comes for it that holds the poison; of
    that answer nothing arrives."""

    victim, deaths = None, 0

    def loses(self, names, held):
        if not {"claim", "claim_suspect"} & set(names) or not any(POISON.encode() in message for message in held):
            return False
        self.victim.process.send_signal(signal.SIGKILL)
        self.deaths += 1
        return True


class Poisoned(Scene):
    """Workers that are started again when they have died, as systemd would."""

    def __init__(self, options, name):
        super().__init__(options, name, SCENARIO, settings=SETTINGS)
        self.wires, self.starts, self.deaths, self.poison, self.rows = {}, {}, 0, None, {}
        self.count = options.rows

    def register_devices(self):
        self.register(self.count)
        self.register(1, name="poison", bad=1, bad_token=SILENT)

    def begin(self):
        wait_until("the workers are up", lambda: all(worker.pid for worker in self.running) and one(
            self.watcher, "SELECT count(*) FROM postbell.workers") == self.workers_wanted, 60)
        rows = self.watcher.execute(ENQUEUE, {"rows": self.count, "poison": 1 + self.count // 2,
                                              "mark": POISON}).fetchall()
        self.rows = dict(rows)
        self.poison = next(name for name, person in rows if person == "poison-1")

    def committed(self):
        return {name: person for name, person in self.rows.items() if name != self.poison}

    def play(self):
        """Until nothing waits, starting again whoever died; answers how long it took, in seconds."""
        began = time.monotonic()
        while time.monotonic() < began + LIMIT:
            self.lives()
            self.strike()
            self.restart_the_dead()
            if not self.starts and one(self.watcher, "SELECT count(*) FROM postbell.places") == 0:
                return time.monotonic() - began
            time.sleep(0.02)
        self.faults.append(f"rows still wait after {LIMIT} s")
        return time.monotonic() - began

    def strike(self):
        """For those who kill from outside."""

    def restart_the_dead(self):
        for index, worker in enumerate(self.running):
            if worker.process.poll() is None:
                continue
            if index not in self.starts:
                self.deaths += 1
                if worker.process.returncode != -signal.SIGKILL:
                    self.faults.append(f"a worker ended with {worker.process.returncode}")
                self.starts[index] = time.monotonic() + RESTART
            elif time.monotonic() >= self.starts[index]:
                del self.starts[index]
                self.running[index] = self.start_again(index)

    def start_again(self, index):
        return self.start_worker()


class KillsByItsClaim(Poisoned):
    """A worker dies before it has seen the row."""

    def start_worker(self):
        return self.start_again(len(self.wires))

    def start_again(self, index):
        if index not in self.wires:
            self.wires[index] = PoisonedWire(self.primary.path()).__enter__()
        self.wire = self.wires[index]  # what the worker's connection is made of
        worker = super().start_worker()
        self.wires[index].victim = worker
        return worker

    def __exit__(self, *_):
        self.wire = None
        super().__exit__()
        for wire in self.wires.values():
            wire.__exit__()


class KillsTheOnlyOne(KillsByItsClaim):
    """Whoever recovers the row was not there when it was claimed."""

    workers_wanted = 1


class KillsByItsSend(Poisoned):
    """A worker dies when the row's request has reached the provider, after others of the same lease."""

    def strike(self):
        holder = self.watcher.execute(HOLDER, {"id": self.poison}).fetchone()
        alive = [worker.process for worker in self.running if worker.process.poll() is None]
        for process in alive:
            if holder == (process.pid,) and self.has_arrived_since_its_claim():
                process.kill()

    def has_arrived_since_its_claim(self):
        arrived = sum(arrival.apns_id == self.poison for arrival in self.arrivals())
        return arrived > self.deaths


def run(options):
    faults = []
    for how, name in ((KillsByItsClaim, "poison-claimed"), (KillsByItsSend, "poison-sent"),
                      (KillsTheOnlyOne, "poison-alone")):
        with how(options, name) as scene:
            seconds = scene.play()
            faults += report(scene, seconds)
    return faults


def report(scene, seconds):
    # Whoever has only just been started obeys a signal before it can obey in order.
    for worker in scene.running:
        wait_until("all workers dispatch", lambda log=worker.log.name: "msg=dispatching" in Path(log).read_text(), 60)
    scene.end_workers()
    committed = scene.committed()
    arrivals = scene.arrivals()
    own = [arrival for arrival in arrivals if arrival.apns_id == scene.poison]
    verdict = scene.judge(None, committed, [arrival for arrival in arrivals if arrival.apns_id != scene.poison],
                          {scene.poison})
    scene.faults += judge_poison(scene.watcher.execute(CRASHED, [scene.poison]).fetchall(), scene.deaths)
    causes = ", ".join(f"{cause} {count}" for cause, count in sorted(verdict.by_cause.items())) or "none to explain"
    return say(scene.name, f"committed {verdict.committed} beside the poison, settled {verdict.settled}, accepted "
               f"{verdict.accepted}, duplicate {verdict.duplicate} ({causes}), unexplained {verdict.unexplained}, lost "
               f"{verdict.lost}, requests of the poison {len(own)}, workers killed by it {scene.deaths} (set aside "
               f"after {CRASHES}), all settled after {seconds:.0f} s", scene.faults) + scene.say_hygiene()


def judge_poison(settlements, deaths):
    """What is wrong with the end of the row that kills, given its settlements (of one route, status, reason)."""
    faults = []
    if settlements != [(True, "failed", "crashes")]:
        faults.append(f"the poison was not set aside, or not alone: {settlements}")
    if deaths != CRASHES:
        faults.append(f"{deaths} workers died of it, it is set aside after {CRASHES}")
    return faults
