#!/usr/bin/env python3
"""Workers die, pause and are told to stop at every named step, and nothing may be lost, sent unclaimed or said wrongly.

    crash.py --programs FOLDER --server CONNECTION --folder FOLDER [--seeds N] [--together N] [--seed N]
        [--step NAME]… [--signal NAME]…

CONNECTION belongs to a superuser of a private server; logs go to the folder. Each round prints one line; then one
begins with `ok` or `not ok` for each step and signal. The status is 0 when all hold, 3 when one does not.
"""

import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import psycopg

from crash_cell import KEY, TEAM, TOPIC, Cell
from crash_steps import SIGNALS, STEPS
from stand import one, wait_until

ROLE = "crash_worker"
CATALOG = """
SELECT postbell.define_kind('crash', presentation => 'template', payload => '{"run_id": "uuid!"}',
    content => '{"title": "Run finished", "body": "Open the app to see the result", "container": "crash"}')
"""
# Every person has two devices. Some tokens fail once, are answered late, or are dead; bytes 9 to 16 are the round's.
REGISTER = """
SELECT count(postbell.device_register('person-' || g, 'device-' || d, 'apns', %(topic)s,
    CASE WHEN d = 1 THEN '0a0a0a0a'
         WHEN g %% 20 = 1 THEN 'fa5031aa' WHEN g %% 20 = 2 THEN 'fa0011aa' WHEN g %% 20 = 3 THEN 'fa410aaa'
         WHEN g %% 20 = 4 THEN 'fa0032aa' ELSE '0b0b0b0b' END
        || '00000000' || lpad(to_hex(g * 2 + d), 48, '0'), environment => 'production'))
FROM generate_series(1, 60) g, generate_series(1, 2) d
"""
# Put on record when they come and answered later, so that what happens to a worker meets requests in flight.
SCENARIO = "apns slow 20ms prefix 0a0a\napns slow 20ms prefix 0b0b\n"
DEVICES = """
CREATE TABLE witness.devices AS
SELECT device_no, token, token NOT LIKE 'fa410%%' AS good FROM postbell.devices
"""


class Matrix:
    """What all rounds share: the programs, one fake provider, one migrated database to copy."""

    def __init__(self, options):
        self.options, self.base = options, options.seed
        self.folder, self.server, self.role = Path(options.folder), options.server, ROLE
        self.program = Path(options.programs) / "postbell"
        self.template = f"crash_{os.getpid()}_template"
        self.log = self.folder / "requests.jsonl"
        self.cloning = threading.Lock()

    def __enter__(self):
        with psycopg.connect(self.server, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {self.template}")
            if not one(admin, f"SELECT count(*) FROM pg_roles WHERE rolname = '{ROLE}'"):
                admin.execute(f"CREATE ROLE {ROLE} LOGIN")
        template = psycopg.conninfo.make_conninfo(self.server, dbname=self.template)
        migrated = subprocess.run([self.program, "migrate"], capture_output=True, text=True, check=False,
                                  env=dict(os.environ, DATABASE_URL=template))
        if migrated.returncode != 0:
            sys.exit(f"the schema could not be made\n{migrated.stderr}")
        with psycopg.connect(template, autocommit=True) as watcher:
            watcher.execute(f"GRANT postbell_dispatcher TO {ROLE}")
            watcher.execute(CATALOG)
            watcher.execute(REGISTER, {"topic": TOPIC})
            watcher.execute((Path(__file__).parent / "crash_witness.sql").read_text(encoding="utf-8"))
            watcher.execute(DEVICES)
        self.start_fake()
        return self

    def start_fake(self):
        output = open(self.folder / "fake.log", "wb")
        (self.folder / "scenario").write_text(SCENARIO, encoding="utf-8")
        self.fake = subprocess.Popen(
            [Path(self.options.programs) / "postbell-fake-providers", "--certificates", self.folder / "fake",
             "--make-key", "--team-id", TEAM, "--key-id", KEY, "--topic", TOPIC, "--port-file", self.folder / "port",
             "--log", self.log, "--scenario", self.folder / "scenario", "--slowness", "1900ms"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        port = self.folder / "port"
        wait_until("the fake provider starts", lambda: port.exists() and port.read_text(), 30)
        self.provider = {
            "APNS_KEY_FILE": str(self.folder / "fake" / "apns.p8"), "APNS_KEY_ID": KEY, "APNS_TEAM_ID": TEAM,
            "APNS_TOPIC": TOPIC, "POSTBELL_CA_FILE": str(self.folder / "fake" / "ca.pem"),
            "POSTBELL_APNS_ENDPOINT": f"https://localhost:{port.read_text().strip()}"}

    def __exit__(self, *_):
        self.fake.terminate()
        self.fake.wait(30)
        with psycopg.connect(self.server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {self.template} WITH (FORCE)")

    def run(self):
        """Whether all rounds hold."""
        wanted = [(step, name) for step in self.options.step or STEPS for name in self.options.signal or SIGNALS]
        rounds = [(step, name, seed) for seed in range(1, self.options.seeds + 1) for step, name in wanted]
        bad = {}
        with concurrent.futures.ThreadPoolExecutor(self.options.together) as pool:
            cells = {}
            for number, (step, name, seed) in enumerate(rounds, 1):
                cells[pool.submit(self.play, step, name, seed, number)] = (step, name, seed)
            for done in concurrent.futures.as_completed(cells):
                step, name, seed = cells[done]
                for fault in done.result()[:10]:
                    print(f"  broke: {step} {name} seed {seed}: {fault}", file=sys.stderr, flush=True)
                if done.result():
                    bad.setdefault((step, name), []).append(seed)
        for step, name in wanted:
            seeds = bad.get((step, name))
            print(f"{'not ok' if seeds else 'ok'} SIG{name} at {step}" + (f": seeds {seeds}" if seeds else ""))
        print(f"{len(rounds) - sum(map(len, bad.values()))} of {len(rounds)} rounds hold", flush=True)
        return not bad

    def play(self, step, name, seed, number):
        return Cell(self, step, name, seed, number).run()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("programs", "server", "folder"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--seeds", type=int, default=100)
    arguments.add_argument("--together", type=int, default=8, help="rounds at a time")
    arguments.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments.add_argument("--step", action="append", choices=STEPS, default=[])
    arguments.add_argument("--signal", action="append", choices=SIGNALS, default=[])
    options = arguments.parse_args()
    print(f"seed {options.seed}", flush=True)
    with Matrix(options) as matrix:
        holds = matrix.run()
    sys.exit(0 if holds else 3)


os.umask(0o077)
main()
