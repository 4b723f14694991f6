"""A database where rows are enqueued in two ways: through the outbox's triggers as they are shipped, and by hand into
equal tables without triggers; and producers that do so as fast as they can.

Producers are pgbench's, which is C and cheap: what they cost takes from both ways alike.
"""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from sides import migrate, spent_by

DATABASE, PRODUCER = "postbell_bench_enqueue", "bench_producer"
PRINCIPALS = 10_000
WARM = 0.3  # seconds that producers run before what they do counts

# What a producer stores itself: the change that is announced.
CHANGE = "INSERT INTO app.approvals (id, session_id) VALUES (gen_random_uuid(), '{session}');"
PAYLOAD = ('{{"approval_id": "0b0e7f4e-2f67-4b0c-9a3f-0123456789ab", "session_id": "{session}",'
           ' "tool_name": "mail.send"}}')
SESSION = "7d8f1c52-93ab-4f0e-8a6d-fedcba987654"
# The columns that a producer gives, as on docs/producing.md, and their values: keys are as random as ids are.
COLUMNS = "principal_id, kind, dedupe_key, subject, thread, payload"
VALUES = ("'person-' || {person}, 'approval_requested', 'approval.requested:' || {key}, 'approval:' || {key},"
          " 'session:' || {person}, '" + PAYLOAD + "'")

# The row through the triggers.
THROUGH = "INSERT INTO postbell.outbox (" + COLUMNS + ") VALUES (" + VALUES + ") ON CONFLICT DO NOTHING"
# The same row and its queue row by hand in one statement: what the triggers find out is given as constants.
BY_HAND = (
    "WITH n AS (INSERT INTO byhand.outbox (id, created_at, planned_at, expires_at, kind_no, tenant_no, urgency, routes,"
    " collapse_key, " + COLUMNS + ")"
    " VALUES (byhand.uuid7(now()), now(), now(), now() + interval '24 h', {kind}, {tenant}, 'urgent', '{{{route}}}',"
    " 'approval.requested:' || {key}, " + VALUES + ")"
    " ON CONFLICT DO NOTHING RETURNING id, planned_at, tenant_no)"
    " INSERT INTO byhand.queue (due_at, notification_id, tenant_no, route_no, urgency)"
    " SELECT n.planned_at, n.id, n.tenant_no, {route}, 0 FROM n")

BY_HAND_TABLES = """
CREATE SCHEMA app;
CREATE TABLE app.approvals (id uuid PRIMARY KEY, session_id uuid NOT NULL);
CREATE SCHEMA byhand;
CREATE TABLE byhand.outbox (LIKE postbell.outbox INCLUDING ALL);
CREATE TABLE byhand.queue (LIKE postbell.queue INCLUDING ALL);
GRANT USAGE ON SCHEMA app, byhand TO bench_producer;
GRANT INSERT, SELECT ON ALL TABLES IN SCHEMA app, byhand TO bench_producer;
"""


class Producing:
    """The database and its sessions: `admin` looks after it, `producer` has a producer's rights, `keeper` does what a
    worker does that producers feel. `constants` is what rows by hand have in the place of look-ups."""

    def __init__(self, server, pgbench, folder):
        self.server, self.pgbench, self.folder = server, pgbench, Path(folder)
        self.drop()
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {DATABASE}")
            admin.execute(f"CREATE ROLE {PRODUCER} LOGIN")
            # it would look after one side while the other is measured
            admin.execute("ALTER SYSTEM SET autovacuum = off")
            admin.execute("SELECT pg_reload_conf()")
        self.admin = self.connect()
        self.keeper = self.connect()
        self.make_schema()
        self.producer = self.connect(user=PRODUCER)
        self.sleep()

    def connect(self, **arguments):
        return psycopg.connect(psycopg.conninfo.make_conninfo(self.server, dbname=DATABASE, **arguments),
                               autocommit=True, cursor_factory=psycopg.ClientCursor)

    def close(self):
        for connection in (self.producer, self.keeper, self.admin):
            connection.close()
        self.drop()

    def drop(self):
        with psycopg.connect(self.server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
            admin.execute(f"DROP ROLE IF EXISTS {PRODUCER}")
            admin.execute("ALTER SYSTEM RESET autovacuum")
            admin.execute("SELECT pg_reload_conf()")

    def make_schema(self):
        run = self.admin.execute
        migrate(self.admin)
        run(f"GRANT postbell_producer TO {PRODUCER}")
        kind = run(
            "SELECT postbell.define_kind('approval_requested', 'template',"
            " payload => '{\"approval_id\": \"uuid!\", \"session_id\": \"uuid!\", \"tool_name\": \"slug!\"}',"
            " content => '{\"title\": \"Approval needed\", \"body\": \"Allow {tool_name}?\"}')").fetchone()[0]
        self.route = run("INSERT INTO postbell.routes (provider, environment, app)"
                         " VALUES ('apns', 'production', 'com.example.app') RETURNING route_no").fetchone()[0]
        run("INSERT INTO postbell.devices (id, principal_id, client_device_id, provider, environment, app, route_no,"
            " token, token_seq, token_registered_at, success_due_at)"
            " SELECT postbell.uuid7(), 'person-' || g, 'phone', 'apns', 'production', 'com.example.app', %s,"
            " md5(g::text) || md5(g::text), 1, now(), 'infinity' FROM generate_series(1, %s) g",
            (self.route, PRINCIPALS))
        tenant = run("SELECT tenant_no FROM postbell.tenants WHERE tenant_id = 'default'").fetchone()[0]
        self.constants = dict(kind=kind, tenant=tenant, route=self.route, session=SESSION)
        run(BY_HAND_TABLES)
        # ids are made alike, and cost alike
        made = run("SELECT pg_get_functiondef('postbell.uuid7'::regproc)").fetchone()[0]
        run(made.replace("FUNCTION postbell.", "FUNCTION byhand."))
        run("VACUUM (ANALYZE)")

    def awake(self):
        """As while a worker is at work: its session listens and holds the key of its route."""
        self.keeper.execute("LISTEN postbell")
        self.keeper.execute(f"SELECT pg_advisory_lock(postbell.awake_class(), {self.route})")

    def sleep(self):
        """As while a worker has nothing to do: it listens, and is to be woken."""
        self.keeper.execute("SELECT pg_advisory_unlock_all()")
        self.keeper.execute("LISTEN postbell")

    def empty(self):
        """Every measurement begins with empty tables."""
        self.admin.execute("TRUNCATE postbell.outbox, postbell.queue, byhand.outbox, byhand.queue, app.approvals")

    def rows(self, schema):
        """Rows of an outbox and its queue."""
        return self.admin.execute(
            f"SELECT (SELECT count(*) FROM {schema}.outbox), (SELECT count(*) FROM {schema}.queue)").fetchone()

    def produce(self, clients, seconds, statement, schema, with_change=True):
        """Lets so many producers enqueue one row per transaction; what they came to. `schema` is where rows end up."""
        self.empty()
        self.await_end()
        script = self.folder / "producer.sql"
        script.write_text(transaction(statement, with_change, self.constants))
        with subprocess.Popen(
                [self.pgbench, "--no-vacuum", "--protocol=prepared", f"--client={clients}", "--jobs=1",
                 f"--time={int(seconds) + 60}", f"--file={script}",
                 psycopg.conninfo.make_conninfo(self.server, dbname=DATABASE, user=PRODUCER)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pgbench:
            try:
                window = self.watch(pgbench, clients, seconds)
            finally:
                pgbench.send_signal(signal.SIGTERM)
        self.await_end()
        notifications, queued = self.rows(schema)
        if notifications != queued or notifications < window.rows:
            sys.exit(f"{window.rows} transactions made {notifications} rows in {schema} and {queued} in its queue")
        return window

    def watch(self, pgbench, clients, seconds):
        deadline = time.monotonic() + 30
        while len(self.sessions()) < clients:
            if pgbench.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the producers did not start\n{pgbench.communicate()[0]}")
            time.sleep(0.02)
        time.sleep(WARM)
        sessions = self.sessions()
        first = self.reading(sessions)
        time.sleep(seconds)
        if pgbench.poll() is not None:
            sys.exit(f"the producers did not go on\n{pgbench.communicate()[0]}")
        return Window(first, self.reading(sessions))

    def reading(self, sessions):
        """Time, transactions that took an id, bytes of WAL, and CPU of these sessions' back ends in microseconds."""
        transactions, wal = self.admin.execute(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
            " pg_current_wal_insert_lsn() - '0/0'").fetchone()
        return time.monotonic(), transactions, int(wal), sum(spent_by(pid) for pid in sessions)

    def await_end(self):
        deadline = time.monotonic() + 30
        while self.sessions():
            if time.monotonic() > deadline:
                sys.exit("the producers did not end")
            time.sleep(0.02)

    def sessions(self):
        found = self.admin.execute("SELECT pid FROM pg_stat_activity WHERE usename = %s AND application_name = %s",
                                   (PRODUCER, "pgbench"))
        return [row[0] for row in found]


class Window:
    """What producers did between two readings: rows per second, and CPU and WAL per row."""

    def __init__(self, first, last):
        seconds, self.rows, wal, cpu = (after - before for before, after in zip(first, last))
        if self.rows == 0:
            sys.exit("the producers made nothing")
        self.rate, self.cpu, self.wal = self.rows / seconds, cpu / self.rows, wal / self.rows


def transaction(statement, with_change, constants):
    """A producer's script: its change and the row in one transaction, or the row alone."""
    filled = statement.format(person=":person", key=":key", **constants)
    lines = ["\\set key random(1, 9000000000000000000)", f"\\set person random(1, {PRINCIPALS})"]
    lines += ["BEGIN;", CHANGE.format(**constants), f"{filled};", "COMMIT;"] if with_change else [f"{filled};"]
    return "\n".join(lines) + "\n"
