"""A server that is there and does not do what it is asked: read-only, in recovery, full, locked, or closed to us."""

import signal
import subprocess
import time

import psycopg

from scene import ROLE, Scene, one, wait_until
from wire import Wire

BACK = 5          # seconds from the end of a fault to the next request
QUIET = 3         # seconds in which what was in flight may still reach the provider
CLOSED = 20       # seconds that the server refuses us


def recovery(options):
    """A server that is set read-only under the workers, and one that comes back as a standby."""
    with Scene(options, "recovery") as scene:
        waits, meanwhile = [], 0
        scene.primary.set("default_transaction_read_only", "on")
        began = time.time()
        time.sleep(10)
        meanwhile += scene.requests_between(began + QUIET, time.time())
        refused = scene.logged("read-only")
        scene.primary.set("default_transaction_read_only", "off")
        waits.append(scene.check_recovery("first request", scene.first_request_after(time.time(), 30), BACK))
        time.sleep(3)
        scene.primary.stop(signal.SIGINT)
        scene.primary.become_standby()
        began = scene.primary.start()
        time.sleep(10)
        meanwhile += scene.requests_between(began + QUIET, time.time())
        told = scene.logged("the server is in recovery")
        scene.primary.execute("SELECT pg_promote(true, 30)")
        promoted = time.time()
        scene.look()
        waits.append(scene.check_recovery("first request", scene.first_request_after(promoted, 30), BACK))
        time.sleep(3)
        if meanwhile:
            scene.faults.append(f"{meanwhile} requests while the server took no writes")
        return scene.finish({"read-only": refused, "recovery": told},
                            f"requests meanwhile {meanwhile}, first request {waits[0]} and {waits[1]} after it took "
                            f"writes again (at most {BACK} s)")


class Guarded(Scene):
    """The workers have a password."""

    def prepare(self):
        self.watcher.execute(f"ALTER ROLE {ROLE} PASSWORD 'right'")
        (self.primary.data / "pg_hba.conf").write_text(
            f"local all {ROLE} scram-sha-256\nlocal all all trust\nlocal replication all trust\n")
        self.primary.reload()

    def worker_connection(self):
        return super().worker_connection() + " password=right"


def limits(options):
    """No connection is free for the workers, then their password is another one."""
    with Guarded(options, "limits") as scene:
        fired, told = {}, []
        for code, close, reopen in (("53300", "CONNECTION LIMIT 0", "CONNECTION LIMIT -1"),
                                    ("28P01", "PASSWORD 'changed'", "PASSWORD 'right'")):
            scene.watcher.execute(f"ALTER ROLE {ROLE} {close}")
            began = time.time()
            scene.end_sessions()
            time.sleep(CLOSED)
            scene.watcher.execute(f"ALTER ROLE {ROLE} {reopen}")
            ended = time.time()
            fired[code] = scene.logged(code)
            wait = scene.check_recovery("first request", scene.first_request_after(ended, 30), BACK)
            told.append(f"{code}: first request {wait} later, {scene.check_log_rate(began, ended)}")
            time.sleep(12)
        return scene.finish(fired, f"refused for {CLOSED} s each; {'; '.join(told)}")


def slow(options):
    """Each statement takes 300 ms more than it did."""
    with Scene(options, "slow", wire=Wire) as scene:
        scene.wire.delay = 0.3
        time.sleep(20)
        scene.wire.delay = 0.0
        if scene.logged("lease was lost"):
            scene.faults.append("leases were lost to slowness")
        return scene.finish({"slow answer": scene.wire.delayed}, "300 ms each for 20 s, leases lost "
                            f"{scene.logged('lease was lost')}")


LEAVES = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'postbell.deliveries'::regclass"
TIMES = 5


def locks(options):
    """A stranger who locks what the workers need: for longer than they wait, in the other order, and an isolation level
    under which concurrent statements fail."""
    with Scene(options, "locks", rate=200) as scene:
        with psycopg.connect(scene.connection()) as stranger:
            for _ in range(TIMES):
                stranger.execute("LOCK TABLE postbell.leases IN ACCESS EXCLUSIVE MODE")
                time.sleep(2.5)
                stranger.rollback()
                time.sleep(0.5)
            stranger.execute("SET deadlock_timeout = '1min'")  # so that it is a worker who is told
            stranger.commit()
            leaves = ", ".join(row[0] for row in stranger.execute(LEAVES))
            stranger.rollback()
            end = time.monotonic() + 60
            while scene.logged("40P01") < TIMES and time.monotonic() < end:
                cross(stranger, leaves)
        scene.watcher.execute(f"ALTER ROLE {ROLE} SET default_transaction_isolation = 'repeatable read'")
        scene.end_sessions()
        end = time.monotonic() + 60
        while scene.logged("40001") < TIMES and time.monotonic() < end:
            time.sleep(0.5)
        scene.watcher.execute(f"ALTER ROLE {ROLE} RESET default_transaction_isolation")
        scene.end_sessions()
        time.sleep(3)
        fired = {code: scene.logged(code) for code in ("55P03", "40P01", "40001")}
        # The transactions that wait for a stranger are as old as they are allowed to wait.
        return scene.finish(fired, "lock timeout, deadlock and serialization failure by a second session",
                            deadlocks=1000, oldest=2)


def cross(stranger, leaves):
    """Takes the ledger first and then the leases; a settle takes them in the other order."""
    try:
        stranger.execute(f"LOCK TABLE {leaves} IN SHARE ROW EXCLUSIVE MODE")
        time.sleep(0.3)
        stranger.execute("SELECT FROM postbell.leases FOR UPDATE")
    except psycopg.errors.DeadlockDetected:
        pass
    stranger.rollback()
    time.sleep(1)


SIZE = 64  # MB of the file system that the ledger has to itself
WHOLE = 256  # MB of the one on which all of the server lies


def mount(folder, megabytes):
    """In the namespace of this run: it ends with its processes."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0711", "tmpfs", folder], check=True)


def fill(folder):
    with open(folder / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def make_room(folder):
    (folder / "filler").unlink()


class Small(Scene):
    """The ledger alone lies on a small file system."""

    def prepare(self):
        self.mount = self.primary.folder / "small"
        mount(self.mount, SIZE)
        place = self.mount / "space"
        place.mkdir(mode=0o700)
        if self.options.account:
            subprocess.run(["chown", f"{self.options.account}:{self.options.account}", place], check=True)
        self.watcher.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
        for (leaf,) in self.watcher.execute(LEAVES).fetchall():
            self.watcher.execute(f"ALTER TABLE {leaf} SET TABLESPACE small")
            for (index,) in self.watcher.execute(
                    "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = %s::regclass", [leaf]).fetchall():
                self.watcher.execute(f"ALTER INDEX {index} SET TABLESPACE small")

    def __exit__(self, *details):
        super().__exit__(*details)
        subprocess.run(["umount", self.mount], check=False)


def disk(options):
    """No room for the ledger: nothing is sent that could not be written down."""
    if not options.own_network:
        print("disk: NOT SHOWN, nothing can be mounted here", flush=True)
        return ["disk: not shown: nothing can be mounted here"]
    with Small(options, "disk") as scene:
        time.sleep(3)
        fill(scene.mount)
        began = time.time()
        wait_until("a settle finds no room", lambda: scene.logged("53100"), 60)
        full = time.time()
        time.sleep(15)
        ended = time.time()
        after, quiet = scene.requests_between(full, full + 5), scene.requests_between(full + 5, ended)
        waiting = one(scene.watcher, "SELECT count(*) FROM postbell.places")
        make_room(scene.mount)
        wait = scene.check_recovery("first request", scene.first_request_after(ended, 30), BACK)
        if quiet:
            scene.faults.append(f"{quiet} requests although the ledger had been full for 5 s")
        rate = scene.check_log_rate(full, ended)
        return scene.finish({"53100": scene.logged("53100")},
                            f"the ledger was full {full - began:.1f} s after the disk, requests in the 5 s after that "
                            f"{after} and in the next 10 s {quiet}, rows waiting {waiting}, first request {wait} after "
                            f"there was room (at most {BACK} s), {rate}")


class Cramped(Scene):
    """All of the server lies on a small file system."""

    def __init__(self, options):
        super().__init__(options, "wal")
        self.mount = self.primary.folder

    def __enter__(self):
        mount(self.mount, WHOLE)
        self.primary.move(self.mount / "server")
        return super().__enter__()

    def __exit__(self, *details):
        super().__exit__(*details)
        subprocess.run(["umount", self.mount], check=False)


def wal(options):
    """No room for anything: PostgreSQL panics when it cannot write its log, and cannot come back before there is."""
    if not options.own_network:
        print("wal: NOT SHOWN, nothing can be mounted here", flush=True)
        return ["wal: not shown: nothing can be mounted here"]
    with Cramped(options) as scene:
        time.sleep(3)
        fill(scene.mount)
        wait_until("the server panics", lambda: panicked(scene), 60)
        gone = time.time()
        time.sleep(10)
        meanwhile = scene.requests_between(gone + QUIET, time.time())
        make_room(scene.mount)
        scene.primary.stop()
        back = scene.primary.start()
        scene.look()
        wait = scene.check_recovery("first request", scene.first_request_after(back, 30), BACK)
        time.sleep(3)
        if meanwhile:
            scene.faults.append(f"{meanwhile} requests without a server")
        return scene.finish({"panic": scene.primary.log.read_text().count("PANIC")},
                            f"requests meanwhile {meanwhile}, first request {wait} after the server was back (at most "
                            f"{BACK} s)")


def panicked(scene):
    """Whether it has; otherwise it is made to begin another file of its log."""
    try:
        scene.primary.execute("SELECT pg_switch_wal()")
    except psycopg.Error:
        pass
    return "PANIC" in scene.primary.log.read_text()
