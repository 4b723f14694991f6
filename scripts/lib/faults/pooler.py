"""Workers behind PgBouncer, which gives each transaction another session of the server."""

import shutil
import subprocess
import time

import psycopg

from scene import ENDS_WITH_US, ROLE, Scene, wait_until

# Fewer sessions than the workers hold connections, so that each statement may meet another one.
CONFIGURATION = """
[databases]
* = host={server} port=5432 pool_size=3
[pgbouncer]
listen_addr =
unix_socket_dir = {socket}
listen_port = 6432
pool_mode = transaction
auth_type = trust
auth_file = {users}
admin_users = postgres
logfile =
server_lifetime = 10
server_idle_timeout = 5
"""
RECONNECTS = 20
PROGRAM = "/usr/sbin/pgbouncer"


class Pooled(Scene):
    """The workers reach the server through PgBouncer in transaction mode, with the one setting that this takes."""

    def __init__(self, options):
        super().__init__(options, "pooler", settings={"POSTBELL_WAKE": "poll", "POSTBELL_POLL": "200ms"})
        self.pooler = None

    def prepare(self):
        socket, users = self.primary.socket, self.primary.folder / "users"
        file = self.primary.folder / "pgbouncer.ini"  # where the server's account may read it
        file.write_text(CONFIGURATION.format(server=socket, socket=socket, users=users))
        users.write_text(f'"postgres" ""\n"{ROLE}" ""\n')
        for readable in (file, users):
            readable.chmod(0o644)
        with open(self.folder / "pgbouncer.log", "wb") as log:
            self.pooler = subprocess.Popen(
                [*ENDS_WITH_US, *self.primary.as_account(PROGRAM, file)], cwd="/",
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until("PgBouncer starts", self.answers, 20)

    def answers(self):
        if self.pooler.poll() is not None:
            raise RuntimeError(f"PgBouncer ended: {(self.folder / 'pgbouncer.log').read_text()[-300:]}")
        try:
            self.console("SHOW VERSION")
            return True
        except psycopg.OperationalError:
            return False

    def console(self, command):
        with psycopg.connect(f"host={self.primary.socket} port=6432 user=postgres dbname=pgbouncer",
                             autocommit=True) as session:
            cursor = psycopg.ClientCursor(session)  # it takes simple statements only
            cursor.execute(command)
            return cursor.fetchall() if cursor.description else []

    def worker_connection(self):
        return f"host={self.primary.socket} port=6432 user={ROLE} dbname={self.database}"

    def __exit__(self, *details):
        super().__exit__(*details)
        if self.pooler and self.pooler.poll() is None:
            self.pooler.kill()
            self.pooler.wait()


def run(options):
    if not shutil.which(PROGRAM):
        print("pooler: NOT SHOWN: PgBouncer is missing (Debian's package pgbouncer)", flush=True)
        return ["pooler: not shown: pgbouncer is missing"]
    with Pooled(options) as scene:
        version = scene.console("SHOW VERSION")[0][0]
        for _ in range(RECONNECTS):
            scene.console(f"RECONNECT {scene.database}")  # each server session ends after its transaction
            time.sleep(0.7)
        backends = {row[0] for row in scene.watcher.execute(
            "SELECT pid FROM pg_stat_activity WHERE usename = %s", [ROLE])}
        failed = [line for _, text, line in scene.log_lines() if "sqlstate=" in line and "sqlstate= " not in line]
        scene.faults += [f"a statement failed: {line[25:225]}" for line in failed[:3]]
        return scene.finish({"other sessions": RECONNECTS}, f"{version} in transaction mode, {len(backends)} sessions "
                            f"for the 4 connections of 2 workers, statements that failed {len(failed)}")
