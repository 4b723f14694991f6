"""A fake provider, a database and workers of one fault."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
from measure import cpu_seconds  # noqa: E402, F401
from worker import Worker, one, wait_until  # noqa: E402

TOPIC, KEY, TEAM = "com.example.faults", "FAULTSKEY1", "FAULTSTEAM"
ROLE = "faults_worker"

CATALOG = """
SELECT postbell.define_kind('fault', presentation => 'template', payload => '{"run_id": "uuid!"}',
    content => '{"title": "Run finished", "body": "Open the app to see the result", "container": "faults"}')
"""
# In transactions of a thousand: each registration takes a lock until its own ends.
REGISTER = """
SELECT count(postbell.device_register(%(name)s || '-' || g, 'phone', %(provider)s, %(topic)s,
    CASE WHEN g %% %(bad)s = 0 THEN %(bad_token)s ELSE '0a0a0a' END || lpad(to_hex(g), 8, '0') || md5(%(name)s)
        || repeat('0', 18), environment => CASE %(provider)s WHEN 'apns' THEN 'production' END))
FROM generate_series(%(first)s::int, %(last)s::int) g
"""
ENQUEUE = """
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, payload)
SELECT %(name)s || '-' || g, 'fault', %(name)s || '-' || g || %(more)s,
    '{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}'
FROM generate_series(%(first)s::int, %(last)s::int) g
"""
# What a stand starts ends with it, also when it is killed.
ENDS_WITH_US = ["setpriv", "--pdeathsig", "KILL", "--"]
# So many that no bad device is among them.
NEVER = 2_000_000_000


class Stand:
    """`with Stand(options, name, scenario) as stand`: everything up but the workers, and gone afterwards."""

    def __init__(self, options, name, scenario, *arguments):
        self.options, self.name = options, name
        self.folder = Path(options.folder) / name
        self.folder.mkdir(mode=0o700)
        self.scenario, self.arguments = scenario, arguments
        self.database = f"faults_{os.getpid()}_{name.replace('-', '_')}"
        self.workers = 0

    def __enter__(self):
        programs = Path(self.options.programs)
        self.write_scenario()
        with psycopg.connect(self.options.server, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {self.database}")
            if not one(admin, f"SELECT count(*) FROM pg_roles WHERE rolname = '{ROLE}'"):
                try:
                    admin.execute(f"CREATE ROLE {ROLE} LOGIN")
                except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject):
                    pass  # another fault has made it meanwhile
        for attempt in range(3):  # roles belong to the whole server, and others migrate at the same time
            migrated = subprocess.run([programs / "postbell", "migrate"], capture_output=True, text=True, check=False,
                                      env=dict(os.environ, DATABASE_URL=self.connection()))
            if migrated.returncode == 0:
                break
            time.sleep(1 + attempt)
        else:
            sys.exit(f"the schema could not be made\n{migrated.stderr}")
        self.watcher = psycopg.connect(self.connection(), autocommit=True)
        self.watcher.execute(f"GRANT postbell_dispatcher TO {ROLE}")
        self.watcher.execute(CATALOG)
        self.fake = None
        return self

    def start_fake(self):
        """From here on the scenario's time counts."""
        log = open(self.folder / "fake.log", "wb")
        self.fake = subprocess.Popen(
            [*ENDS_WITH_US, Path(self.options.programs) / "postbell-fake-providers",
             "--certificates", self.folder / "fake", "--make-key", "--team-id", TEAM, "--key-id", KEY,
             "--port-file", self.folder / "port", "--log", self.folder / "requests.jsonl",
             "--scenario", self.folder / "scenario", *self.arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.began = time.monotonic()
        port = self.folder / "port"
        wait_until("the fake provider starts", lambda: self.lives() and port.exists() and port.read_text(), 30)

    def play(self, scenario):
        """Another scenario; its time begins now."""
        self.scenario = scenario
        self.write_scenario()
        self.fake.send_signal(signal.SIGHUP)
        self.began = time.monotonic()

    def write_scenario(self):
        (self.folder / "scenario").write_text("\n".join(self.scenario) + "\n")

    def port(self, service=""):
        """Where the fake listens: APNs, or `fcm` or `token` when it was started with them."""
        return int((self.folder / f"port{service and '.'}{service}").read_text())

    def lives(self):
        if self.fake.poll() is not None:
            sys.exit(f"the fake provider ended: {(self.folder / 'fake.log').read_text()[-300:]}")
        return True

    def __exit__(self, *_):
        if self.fake:
            self.fake.send_signal(signal.SIGTERM)
            self.fake.wait(30)
        self.watcher.close()
        with psycopg.connect(self.options.server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {self.database} WITH (FORCE)")

    def connection(self, user="postgres"):
        return psycopg.conninfo.make_conninfo(self.options.server, dbname=self.database, user=user)

    def worker(self, **settings):
        """A worker with the fake's key, to be used in `with`."""
        self.workers += 1
        endpoint = f"https://localhost:{self.port()}"
        values = {"DATABASE_URL": self.connection(ROLE), "APNS_KEY_FILE": str(self.folder / "fake" / "apns.p8"),
                  "APNS_KEY_ID": KEY, "APNS_TEAM_ID": TEAM, "APNS_TOPIC": TOPIC,
                  "POSTBELL_CA_FILE": str(self.folder / "fake" / "ca.pem"), "POSTBELL_APNS_ENDPOINT": endpoint,
                  **settings}
        program, log = Path(self.options.programs) / "postbell", self.folder / f"worker-{self.workers}.log"
        return Worker([*ENDS_WITH_US, str(program)], log, **values)

    def register(self, count, name="p", topic=TOPIC, provider="apns", bad=NEVER, bad_token="fa410a"):
        for first in range(1, count + 1, 1000):
            self.watcher.execute(REGISTER, {"name": name, "topic": topic, "provider": provider, "bad": bad,
                                            "bad_token": bad_token, "first": first, "last": min(count, first + 999)})
        self.watcher.execute("ANALYZE postbell.devices")

    def register_tenants(self, people):
        """So many people for each tenant, named after it, with a phone each."""
        for tenant, count in people.items():
            self.watcher.execute("SELECT set_config('postbell.tenant_id', %s, false)", [tenant])
            self.register(count, name=tenant)
        self.watcher.execute("RESET postbell.tenant_id")

    def enqueue(self, first, last, name="p", more=""):
        self.watcher.execute(ENQUEUE, {"name": name, "first": first, "last": last, "more": more})

    def passed(self):
        """Seconds of the scenario so far."""
        return time.monotonic() - self.began

    def wait_for(self, instant):
        """Until so many seconds of the scenario have passed."""
        while self.passed() < instant:
            self.lives()
            time.sleep(min(1, max(0.01, instant - self.passed())))

    def wait_until_settled(self, seconds):
        """Whether nothing waits or is in flight within so many seconds; answers how many rows still do."""
        pending = "SELECT count(*) FROM postbell.places"
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if one(self.watcher, pending) == 0:
                return 0
            time.sleep(0.5)
        return one(self.watcher, pending)

    def requests(self):
        """What the fake has put on record, in order: dictionaries."""
        with open(self.folder / "requests.jsonl", "rb") as log:
            return [json.loads(line) for line in log if line.endswith(b"\n")]

    def statuses(self):
        """How many notifications have which status."""
        return dict(self.watcher.execute("SELECT status, count(*) FROM postbell.notifications GROUP BY 1").fetchall())

    def cleared(self):
        return one(self.watcher, "SELECT count(*) FROM postbell.devices WHERE token IS NULL")

    def common_faults(self, accepted, good):
        """What must hold after every fault: each good push accepted once, nothing failed, no token lost."""
        faults = []
        if any(count != 1 for count in accepted.values()) or len(accepted) != good:
            twice = sum(count > 1 for count in accepted.values())
            faults.append(f"{len(accepted)} of {good} were accepted, {twice} of them more than once")
        bad = {status: count for status, count in self.statuses().items() if status not in ("dispatched", "pending")}
        if bad:
            faults.append(f"ended otherwise: {bad}")
        faults += [f"audit: {fault} {detail}" for fault, detail in
                   self.watcher.execute("SELECT fault, detail FROM postbell.audit()").fetchall()]
        return faults


def say(name, numbers, faults):
    print(f"{name}: {numbers}, {'holds' if not faults else 'DOES NOT HOLD'}", flush=True)
    return [f"{name}: {fault}" for fault in faults]


def accepts(requests):
    """How often each notification was accepted."""
    counts = {}
    for request in requests:
        if request["status"] == 200:
            name = request["headers"]["apns-id"]
            counts[name] = counts.get(name, 0) + 1
    return counts
