"""A private PostgreSQL server that faults may stop, fill up, follow and promote."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

# It survives the death of its processes but not a power cut, so it does not wait for the disk.
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{socket}'
unix_socket_permissions = 0700
port = 5432
fsync = off
full_page_writes = off
synchronous_commit = on
max_connections = 60
max_wal_senders = 4
deadlock_timeout = 200ms
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %u '
"""


class Cluster:
    """A server of its own, reachable by a Unix socket only; its log goes to the fault's folder."""

    def __init__(self, options, name, log):
        self.bin, self.account = Path(options.postgres), options.account
        self.log, self.process = log, None
        self.move(Path(options.clusters) / name)

    def move(self, folder):
        """Where it is to be made."""
        self.folder, self.data, self.socket = folder, folder / "data", folder / "socket"

    def as_account(self, *command):
        """The server refuses to run as root: root lends it an account, and a namespace's root its own user's number."""
        if os.geteuid() != 0:
            return [*command]
        if self.account:
            return ["setpriv", f"--reuid={self.account}", f"--regid={self.account}", "--clear-groups", "--", *command]
        return ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--", *command]

    def run(self, program, *arguments):
        done = subprocess.run(self.as_account(self.bin / program, *arguments), cwd="/", capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{program} failed: {done.stderr.strip()}")

    def make_folders(self):
        for folder in (self.folder, self.socket):
            folder.mkdir(mode=0o700)
            if os.geteuid() == 0 and self.account:
                subprocess.run(["chown", f"{self.account}:{self.account}", folder], check=True)

    def create(self):
        self.make_folders()
        self.run("initdb", f"--pgdata={self.data}", "--username=postgres", "--auth=trust", "--encoding=UTF8",
                 "--locale=C.UTF-8", "--no-sync", "--no-instructions")
        self.configure()

    def configure(self):
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write(SETTINGS.format(socket=self.socket))

    def follow(self, primary):
        """Becomes a copy of `primary` that streams from it, under the application name `standby`."""
        self.make_folders()
        self.run("pg_basebackup", f"--pgdata={self.data}", "--dbname", primary.connection(), "--checkpoint=fast",
                 "--wal-method=stream", "--no-sync")
        self.configure()
        self.set_later("primary_conninfo", primary.connection().replace("'", "''") + " application_name=standby")
        self.become_standby()

    def become_standby(self):
        """From the next start on it is in recovery until it is promoted."""
        (self.data / "standby.signal").touch()
        if os.geteuid() == 0 and self.account:
            subprocess.run(["chown", f"{self.account}:{self.account}", self.data / "standby.signal"], check=True)

    def set_later(self, name, value):
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.write(f"{name} = '{value}'\n")

    def start(self):
        """Answers at which time it took connections."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "INT", "--", *self.as_account(self.bin / "postgres", "-D", self.data)],
                cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                psycopg.connect(self.connection(), connect_timeout=5).close()
                return time.time()
            except psycopg.OperationalError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        sys.exit(f"PostgreSQL did not start: {self.log.read_text()[-500:]}")

    def stop(self, how=signal.SIGQUIT):
        """SIGQUIT: immediately, as a crash."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)

    def connection(self, user="postgres", database="postgres"):
        return f"host={self.socket} port=5432 user={user} dbname={database}"

    def path(self):
        return str(self.socket / ".s.PGSQL.5432")

    def execute(self, query, database="postgres"):
        with psycopg.connect(self.connection(database=database), autocommit=True) as session:
            cursor = session.execute(query)
            return cursor.fetchall() if cursor.description else []

    def set(self, name, value):
        """ALTER SYSTEM, in force when this returns as far as the server takes it without a restart."""
        self.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        self.reload()

    def reload(self):
        self.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)
