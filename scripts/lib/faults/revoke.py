"""Devices are revoked, subjects superseded and threads erased while their notifications are being sent: how long after
each commit a request for them still leaves."""

import collections
import heapq
import random
import signal
import threading
import time

import psycopg

from measure import quantile
from scene import Scene, one, say, wait_until, witnesses

HOW = {"device": "SELECT postbell.device_revoke(principal_id => %s)",
       "subject": "SELECT postbell.supersede('default', %s)",
       "thread": "SELECT postbell.erase('default', %s)"}
ROWS, WAVE = 40, 100       # notifications of each victim; victims of each kind that are sent for at the same time
RECHECK, MARGIN = 1.0, 0.1  # seconds: the setting, and what may pass between a check and the arrival at the provider
# Now and then answers take so long that what is in hand waits for nearly as long as a check holds, or longer.
SCENARIO = [f"apns slow {milliseconds}ms from {at}s to {at + 1}s"
            for start in range(4, 400, 8) for milliseconds, at in ((2500, start), (800, start + 4))]
SCENARIO += ["apns slow 100ms"]
SETTINGS = {"POSTBELL_RECHECK_AFTER": f"{RECHECK:g}s", "POSTBELL_CONCURRENCY": "150", "POSTBELL_LEASE": "20s",
            "POSTBELL_REQUEST_TIMEOUT": "10s"}
BACKLOG = 3000             # rows left in the queue when the next wave comes
LIMIT = 900
ENQUEUE = f"""
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, thread, payload)
SELECT v.name, 'fault', v.name || '-' || turn, v.name, v.name,
    '{{"run_id": "00000000-0000-4000-8000-' || lpad(turn::text, 12, '0') || '"}}'
FROM generate_series(1, {ROWS}) turn, unnest(%(names)s::text[]) v(name)
ORDER BY turn
RETURNING id::text, principal_id
"""
# When the server committed each, by its own record of commits.
COMMITS = """
SELECT principal_id, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8
FROM postbell.devices WHERE status = 'revoked'
UNION ALL
SELECT subject, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM postbell.supersessions
UNION ALL
SELECT thread, extract(epoch FROM pg_xact_commit_timestamp(xmin))::float8 FROM postbell.erasures
"""
ENDS = """
SELECT split_part(n.principal_id, '-', 1), n.status || coalesce(' (' || n.reason || ')', ''), count(*)
FROM postbell.notifications n GROUP BY 1, 2
"""
ALLOWED = {"device": {"dispatched", "dispatched (revoked)"}, "subject": {"dispatched", "superseded (superseded)"},
           "thread": {"dispatched", "cancelled (erased)"}}


class Revoking(Scene):
    """Waves of victims, three kinds of them; each is struck at a random moment of the time that its wave takes."""

    def __init__(self, options):
        super().__init__(options, "revoke", SCENARIO, settings=SETTINGS)
        self.victims = max(WAVE, options.rows // len(HOW))  # of each kind
        self.people, self.draws = {}, random.Random(5)
        self.strikers = []

    def register_devices(self):
        for kind in HOW:
            self.register(self.victims, name=kind)
        # Tokens go with their revocation.
        self.owners = dict(self.watcher.execute("SELECT token, principal_id FROM postbell.devices").fetchall())

    def prepare(self):
        self.primary.set_later("track_commit_timestamp", "on")
        self.primary.stop(signal.SIGINT)
        self.primary.start()
        self.look()

    def begin(self):
        wait_until("both workers are up", lambda: all(worker.pid for worker in self.running) and one(
            self.watcher, "SELECT count(*) FROM postbell.workers") == 2, 60)
        self.strikers = [Striker(self.connection(), statement) for statement in HOW.values()]

    def play(self):
        """All waves, one after the other."""
        took = 4.0
        for first in range(1, self.victims + 1, WAVE):
            began = time.monotonic()
            numbers = range(first, min(self.victims, first + WAVE - 1) + 1)
            names = [f"{kind}-{number}" for number in numbers for kind in HOW]
            self.people.update(self.watcher.execute(ENQUEUE, {"names": names}).fetchall())
            for striker, kind in zip(self.strikers, HOW):
                for number in numbers:
                    striker.strike(f"{kind}-{number}", time.monotonic() + self.draws.uniform(0.1, 1.1) * took)
            wait_until("a wave is sent", lambda: self.lives() and one(
                self.watcher, "SELECT count(*) FROM postbell.queue") < BACKLOG, LIMIT)
            took = time.monotonic() - began
        for striker in self.strikers:
            striker.finish()
        left = self.wait_until_settled(LIMIT)
        if left:
            self.faults.append(f"{left} rows still wait")

    def __exit__(self, *_):
        for striker in self.strikers:
            striker.told.set()
        super().__exit__()


class Striker(threading.Thread):
    """Carries out one kind of revocation for victims, each at its time."""

    def __init__(self, connection, statement):
        super().__init__(daemon=True)
        self.connection, self.statement = connection, statement
        self.waiting, self.lock, self.told, self.last = [], threading.Lock(), threading.Event(), threading.Event()
        self.failure = None
        self.start()

    def strike(self, name, at):
        with self.lock:
            heapq.heappush(self.waiting, (at, name))

    def finish(self):
        """Waits until all that it was told is done."""
        self.last.set()
        self.join(LIMIT)
        if self.failure or self.is_alive():
            raise self.failure or RuntimeError("revocations take too long")

    def run(self):
        try:
            with psycopg.connect(self.connection, autocommit=True) as session:
                while not self.told.is_set():
                    with self.lock:
                        is_due = self.waiting and self.waiting[0][0] <= time.monotonic()
                        name = heapq.heappop(self.waiting)[1] if is_due else None
                        is_done = self.last.is_set() and not self.waiting
                    if name:
                        session.execute(self.statement, [name])
                    elif is_done:
                        return
                    else:
                        time.sleep(0.002)
        except Exception as failure:  # whoever waits for it says so
            self.failure = failure


def lags(commits, requests, rows):
    """Of each victim that was being sent for when it was struck, the seconds from the commit to the last request for
    it, 0 when none came later. `commits`: when each was struck; `requests`: (time, victim); `rows`: how many
    notifications each had. One for whom nothing had left yet, or nothing was left, is no trial and counts in nothing.
    """
    seen = collections.defaultdict(list)
    for at, name in requests:
        seen[name].append(at)
    return {name: max(0.0, max(seen[name]) - at) for name, at in commits.items()
            if seen[name] and min(seen[name]) <= at and len(seen[name]) < rows}


def summary(values):
    """p50, p99 and the most, in milliseconds."""
    return (f"p50 {1000 * quantile(values, 0.5):.0f} ms, p99 {1000 * quantile(values, 0.99):.0f} ms, "
            f"max {1000 * max(values):.0f} ms")


def judge(trials, least, limit):
    """What is wrong with the lags of one kind of revocation: too few, none that had to be stopped, or too late."""
    if len(trials) < least:
        return [f"{len(trials)} were being sent for, at least {least} have to be"]
    if not any(trials):
        return ["no request left after its revocation: nothing was in hand, and nothing was tried"]
    slowest = quantile(trials, 0.99)
    return [f"p99 {slowest:.3f} s from commit to last request, at most {limit:g} s"] if slowest > limit else []


def run(options):
    with Revoking(options) as scene:
        scene.play()
        scene.end_workers()
        requests = [(arrival.at, scene.owners[arrival.token])
                    for arrival in witnesses.each_arrival(scene.folder / "requests.jsonl")]
        found = lags(dict(scene.watcher.execute(COMMITS).fetchall()), requests, ROWS)
        told = [judge_kind(scene, kind, found) for kind in HOW]
        check_ends(scene)
        everyone = list(found.values())
        if not everyone:
            return [*scene.faults, "revoke: nobody was struck while being sent for"]
        return say("revoke", f"notifications {len(scene.people)}, requests {len(requests)}, struck "
                   f"{len(HOW) * scene.victims}, of these {len(everyone)} while being sent for; from commit to last "
                   f"request {summary(everyone)} (p99 at most {1000 * (RECHECK + MARGIN):.0f} ms): {'; '.join(told)}",
                   scene.faults) + scene.say_hygiene()


def judge_kind(scene, kind, found):
    trials = [lag for name, lag in found.items() if name.startswith(f"{kind}-")]
    scene.faults += [f"{kind}: {fault}" for fault in judge(trials, scene.victims // 4, RECHECK + MARGIN)]
    later = [lag for lag in trials if lag > 0]
    if not later:
        return f"{kind} {len(trials)}, none later"
    return f"{kind} {len(trials)}, {summary(trials)}; {len(later)} had one later, {summary(later)}"


def check_ends(scene):
    """Every notification has an end that its victim's kind allows; nothing was accepted twice."""
    for kind, end, number in scene.watcher.execute(ENDS):
        if end not in ALLOWED[kind]:
            scene.faults.append(f"{number} notifications of a {kind} ended {end}")
    accepted = collections.Counter(arrival.apns_id for arrival in
                                   witnesses.each_arrival(scene.folder / "requests.jsonl") if arrival.accepted)
    twice = sum(number > 1 for number in accepted.values())
    if twice:
        scene.faults.append(f"{twice} notifications were accepted twice")
    strange = accepted.keys() - scene.people.keys()
    if strange:
        scene.faults.append(f"{len(strange)} notifications were sent and never committed")
    scene.faults += [f"audit: {fault} {name} {detail}" for fault, name, detail in
                     scene.watcher.execute("SELECT * FROM postbell.audit() LIMIT 20").fetchall()]
