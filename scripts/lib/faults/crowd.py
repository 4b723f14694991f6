"""One person with 100,000 devices gets a notification while others get theirs."""

import json
import statistics
import sys
import time
from pathlib import Path

from fairness import FACTOR, GROWTH, judge_crowd, judge_memory, judge_others
from isolation import Lateness
from stand import TOPIC, Stand, one, say

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from measure import resident_megabytes  # noqa: E402

# As far away as a real provider.
SCENARIO = ["apns delay 50ms"]
CROWD, RATE, PEOPLE, SECONDS, ROUNDS = "crowd", 100, 500, 20, 5
STEP = RATE // 10  # rows of others at a time
PAGE = 500  # POSTBELL_TARGETS_PER_CLAIM by default
LIMIT = 240  # seconds for all devices
REGISTER = """
SELECT postbell.device_register(%(crowd)s, 'phone-0', 'apns', %(topic)s, repeat('c0', 32),
    environment => 'production')
"""
# One by one they would take ten minutes of what is measured here.
COPY = """
INSERT INTO postbell.devices (id, token_seq, token_registered_at, push_token_updated_at, route_no, tenant_id,
    principal_id, client_device_id, provider, environment, app, token)
SELECT gen_random_uuid(), 1, d.token_registered_at, d.push_token_updated_at, d.route_no, d.tenant_id, d.principal_id,
    'phone-' || g, d.provider, d.environment, d.app, 'c0c0c0' || lpad(to_hex(g), 8, '0') || repeat('0', 50)
FROM postbell.devices d, generate_series(1, %(devices)s::int - 1) g WHERE d.principal_id = %(crowd)s
"""
ENQUEUE_ONE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
VALUES (%(crowd)s, 'fault', %(run)s, '{"run_id": "00000000-0000-4000-8000-000000000000"}') RETURNING id::text
"""
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
SELECT 'p-' || (1 + g %% %(people)s), 'fault', 'other-' || g || '-' || %(run)s,
    '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(%(first)s::int, %(last)s::int) g
"""
# From enqueued to answered.
LATENCY = """
SELECT count(*), coalesce(1000 * percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM
    d.attempted_at + d.answer_us * interval '1 microsecond' - o.created_at)), 0)::float8
FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
WHERE d.outcome = 0 AND o.dedupe_key LIKE 'other-%%-' || %(run)s
"""
PAGES = """
SELECT count(*) FROM postbell.deliveries WHERE notification_id = %(id)s::uuid GROUP BY batch
"""


class Run:
    """What one run came to: p99 of the others in milliseconds, resident memory in MB before it, at most and
    afterwards, how late the machine was, and for how long the crowd was sent to."""

    def __init__(self, p99, before, most, after, late, seconds):
        self.p99, self.before, self.most, self.after = p99, before, most, after
        self.late, self.seconds = late, seconds

    def __str__(self):
        return (f"p99 {self.p99:.0f} ms, memory {self.before:.1f}, {self.most:.1f} and {self.after:.1f} MB, machine "
                f"late by {self.late:.1f} ms, {self.seconds:.1f} s")


def run(options):
    devices = 5 * options.rows
    with Stand(options, "devices", SCENARIO) as stand:
        stand.register(PEOPLE)
        stand.watcher.execute(REGISTER, {"crowd": CROWD, "topic": TOPIC})
        stand.watcher.execute(COPY, {"crowd": CROWD, "devices": devices})
        stand.watcher.execute("ANALYZE postbell.devices")
        stand.start_fake()
        with stand.worker() as worker:
            experiment = Experiment(stand, worker, devices)
            experiment.run("warm-up", beside=False)
            runs = {"without": [], "with": []}
            for number in range(ROUNDS):
                # Each kind comes first in turn: what grows over time is no advantage of either.
                for kind in list(runs)[::-1 if number % 2 else 1]:
                    runs[kind].append(experiment.run(f"{kind}-{number}", beside=kind == "with"))
        (stand.folder / "runs").write_text("".join(f"{kind}: {run}\n" for kind in runs for run in runs[kind]))
        faults = experiment.faults + stand.common_faults({}, 0)
    return report(runs, devices, experiment, faults)


def report(runs, devices, experiment, faults):
    def median(kind, value):
        return statistics.median(getattr(run, value) for run in runs[kind])

    faults += judge_others(median("without", "p99"), median("with", "p99"))
    for run_with in runs["with"]:
        faults += judge_memory(run_with.before, run_with.most)
    if faults:
        faults += [f"{kind}: {run}" for kind in runs for run in runs[kind]]
    growth, most = (max(value(run) for run in runs["with"])
                    for value in (lambda run: run.most - run.before, lambda run: run.most))
    return say("devices", f"{devices} devices of one person, {ROUNDS} notifications, each sent to all of them once in "
               f"{median('with', 'seconds'):.0f} s by {experiment.pages} pages of at most {experiment.largest}; memory "
               f"of the worker {runs['with'][0].before:.1f} MB before the first, {most:.1f} MB at most, "
               f"{runs['with'][-1].after:.1f} MB after the last, grown by {growth:.1f} MB in one (at most {GROWTH}); "
               f"p99 of {RATE} others a second {median('with', 'p99'):.0f} ms beside it, "
               f"{median('without', 'p99'):.0f} ms without, medians of {ROUNDS} interleaved runs (at most {FACTOR} "
               f"times), machine late by {median('with', 'late'):.1f} ms and {median('without', 'late'):.1f} ms",
               faults)


class Experiment:
    """Runs with and without the crowd's notification, one after the other; `faults` says what went wrong in them."""

    def __init__(self, stand, worker, devices):
        self.stand, self.worker, self.devices = stand, worker, devices
        self.faults, self.offset, self.pages, self.largest = [], 0, 0, 0

    def run(self, name, beside):
        pid = self.worker.pid
        before, _ = resident_megabytes(pid)
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the most it held begins anew (proc(5))
        with Lateness() as machine:
            enqueued, identifier, seconds = self.load(name, beside)
        self.stand.wait_until_settled(60)
        now, most = resident_megabytes(pid)
        answered, p99 = self.stand.watcher.execute(LATENCY, {"run": name}).fetchone()
        if answered != enqueued:
            self.faults.append(f"{name}: {answered} of {enqueued} pushes of the others were accepted")
        if identifier:
            self.check_crowd(name, identifier)
        return Run(p99, before, most, now, machine.p99, seconds)

    def load(self, name, beside):
        """Rows of others come for some seconds, or until the crowd's notification has ended; how many, its id, and how
        long it took."""
        began, turn, identifier = time.monotonic(), 0, None
        if beside:
            identifier = self.stand.watcher.execute(ENQUEUE_ONE, {"crowd": CROWD, "run": name}).fetchone()[0]
        while time.monotonic() < began + (LIMIT if beside else SECONDS):
            self.stand.watcher.execute(ENQUEUE, {"people": PEOPLE, "run": name, "first": 1 + turn * STEP,
                                                 "last": (turn + 1) * STEP})
            turn += 1
            if beside and turn % 5 == 0 and self.is_over(identifier):
                break
            time.sleep(max(0.0, began + turn / 10 - time.monotonic()))
        return turn * STEP, identifier, time.monotonic() - began

    def is_over(self, identifier):
        places = f"SELECT NOT EXISTS (SELECT FROM postbell.places WHERE notification_id = '{identifier}')"
        return one(self.stand.watcher, places)

    def check_crowd(self, name, identifier):
        arrivals = {}
        with open(self.stand.folder / "requests.jsonl", "rb") as log:
            log.seek(self.offset)
            for line in log:
                if identifier.encode() in line:
                    request = json.loads(line)
                    if request["status"] == 200:
                        arrivals[request["path"]] = arrivals.get(request["path"], 0) + 1
            self.offset = log.tell()
        pages = [count for count, in self.stand.watcher.execute(PAGES, {"id": identifier}).fetchall()]
        self.pages, self.largest = len(pages), max([self.largest, *pages])
        self.faults += [f"{name}: {fault}" for fault in judge_crowd(self.devices, PAGE, arrivals, pages)]
