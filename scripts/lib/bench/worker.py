"""A real worker beside a private server: starting and stopping it, and waiting for what it does."""

import os
import signal
import subprocess
import sys
import time

from measure import cpu_seconds

BACKENDS = "SELECT pid FROM pg_stat_activity WHERE usename = 'bench_worker'"
DONE = "SELECT NOT EXISTS (SELECT FROM postbell.queue) AND NOT EXISTS (SELECT FROM postbell.leases)"


class Worker:
    """A running `postbell dispatch`; its settings are the environment's and those given. `program` is its file, or
    the command that runs it under something else."""

    def __init__(self, program, log, **settings):
        environment = dict(os.environ, SWIFT_BACKTRACE="enable=no", **settings)
        self.log = open(log, "ab")
        command = program if isinstance(program, list) else [program]
        self.process = subprocess.Popen([*command, "dispatch"], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT, env=environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            sys.exit("the worker did not stop within 30 s of SIGTERM")
        self.log.close()

    @property
    def pid(self):
        if self.process.poll() is not None:
            sys.exit(f"the worker ended with status {self.process.returncode}; see {self.log.name}")
        return self.process.pid

    def wait_until_idle(self, watcher):
        """Waits until its sessions stand and everything queued is settled, and a little for the rest of its start."""
        wait_until("the worker connects", lambda: self.pid and watcher.execute(BACKENDS).fetchall(), 30)
        wait_until("what was queued is settled", lambda: self.pid and one(watcher, DONE), 300)
        time.sleep(2)


def wait_until(what, condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.01)


def one(connection, query):
    return connection.execute(query).fetchone()[0]


def backend_seconds(connection):
    """CPU time of each of the worker's backends so far."""
    return {row[0]: cpu_seconds(row[0]) for row in connection.execute(BACKENDS)}
