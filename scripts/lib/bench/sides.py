"""Two schemas that claim and settle batches, and what their PostgreSQL backends spend on it: the protocol sketch in
bench/reference, and the migrated schema with the worker's own statements.

The client's own cost is not in the figures: they are the backend's, from /proc/PID/schedstat, so the server must run on
this machine.
"""

import datetime
import os
import pathlib
import re
import sys
import textwrap
import time
import uuid

import psycopg

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bench" / "reference"))
import statements as reference  # noqa: E402

START = (datetime.datetime(1, 1, 2, tzinfo=datetime.timezone.utc), uuid.UUID(int=0))
PINS = ("enable_seqscan=off", "enable_hashjoin=off", "enable_mergejoin=off", "enable_bitmapscan=off",
        "jit=off", "plan_cache_mode=force_generic_plan")
TENANTS = 16
PRINCIPALS = 100_000


SOURCES = ROOT / "Sources/OutboxPostgres/Statements"
# A part that several statements share: a call with labelled literals, which its text holds in their places.
PART = re.compile(r"^( *)\\\((\w+)\.branches\((.*?)\)\)$", re.MULTILINE)


def literal(name):
    """The first text in a Swift source."""
    return re.search(r'"""\n(.*?)\n *"""', (SOURCES / f"{name}.swift").read_text(), re.DOTALL).group(1)


def part(call):
    text = literal(call[2])
    for label, value in re.findall(r'(\w+): "(.*?)"', call[3]):
        text = text.replace(f"\\({label})", value)
    return textwrap.indent(textwrap.dedent(text), call[1])


def statement(name):
    """The SQL text of a statement, as the Swift source has it."""
    text = PART.sub(part, literal(name))
    if "\\(" in text:
        raise ValueError(f"{name}.swift has a part that is not known here: {text[text.index(chr(92)):][:60]}")
    return text


def spent(connection):
    """CPU of a session's backend so far, in microseconds."""
    return spent_by(connection.info.backend_pid)


def spent_by(pid):
    """The same of the backend that is this process."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e3


def time_ordered():
    raw = bytearray(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10))
    raw[6] = 0x70 | (raw[6] & 15)
    raw[8] = 0x80 | (raw[8] & 63)
    return uuid.UUID(bytes=bytes(raw))


def migrate(connection):
    """Makes the schema as the migrations make it."""
    for file in sorted((ROOT / "sql/migrations").glob("*.sql")):
        with connection.transaction(), psycopg.ClientCursor(connection) as plain:
            plain.execute(file.read_text())


class Side:
    """One schema in a database of its own: enqueues rows, claims and settles batches, and says what its backends spent.

    `worker` is the session that claims and settles, with the planner pinned as the worker pins it; `producer` is a
    session as anybody has it.
    """

    def __init__(self, server, database, subjects=False):
        self.server, self.database, self.subjects = server, database, subjects
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {database}")
        self.producer = self.connect()
        self.owner, self.marks, self.enqueued = uuid.uuid4(), {}, 0
        self.make_schema()
        self.worker = self.connect()
        for setting in PINS:
            self.worker.execute("SET " + setting)
        self.worker.prepare_threshold = 0

    def connect(self):
        return psycopg.connect(psycopg.conninfo.make_conninfo(self.server, dbname=self.database), autocommit=True,
                               cursor_factory=self.cursors)

    def close(self):
        for connection in (self.worker, self.producer):
            connection.close()
        with psycopg.connect(self.server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    def settle_down(self):
        """What a server does by itself in time, done before the measurement."""
        self.producer.execute("VACUUM (ANALYZE)")
        self.producer.execute("CHECKPOINT")

    def run(self, text, parameters):
        """The rows of a statement of the worker, and the microseconds of CPU its backend spent."""
        before = spent(self.worker)
        rows = self.worker.execute(text, parameters, binary=True).fetchall()
        return rows, spent(self.worker) - before

    def enqueue(self, rows, statements=1):
        """Inserts `rows` in as many statements; microseconds of CPU per row."""
        before = spent(self.producer)
        for _ in range(statements):
            self.insert(self.enqueued + 1, rows // statements)
            self.enqueued += rows // statements
        return (spent(self.producer) - before) / rows

    def round(self, batch=1000, flushes=1, retries=False):
        """Claims one batch and settles it; microseconds per row of both, and bytes of WAL per row."""
        wal = self.producer.execute("SELECT pg_current_wal_insert_lsn()").fetchone()[0]
        rows, claim = self.claim(batch)
        settle, step = 0.0, -(-len(rows) // flushes)
        for start in range(0, len(rows), step):
            part = rows[start:start + step]
            returned = [row for index, row in enumerate(part) if retries and index % 33 == 0]
            mask = bytearray(b"0" * len(rows))
            for row in part:
                mask[self.position(row) - 1] = ord("1")
            settle += self.settle(part, returned, mask.decode())
        moved = self.producer.execute(self.bytes_since(), (wal,)).fetchone()[0]
        return claim / len(rows), settle / len(rows), float(moved) / len(rows)


class Reference(Side):
    """The protocol sketch."""

    cursors = psycopg.Cursor

    def bytes_since(self):
        return "SELECT pg_current_wal_insert_lsn() - %s"

    def make_schema(self):
        schema = (ROOT / "bench/reference/schema.sql").read_text().split("\n", 1)[1]
        with psycopg.ClientCursor(self.producer) as plain:
            plain.execute(schema)
        self.producer.execute(
            "INSERT INTO postbell.devices (principal_id, provider, token) SELECT 'user-' || g, 1, "
            "md5(g::text) || md5(g::text) FROM generate_series(1, %s) g", (PRINCIPALS,))

    def insert(self, first, rows):
        self.producer.execute(
            "INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload, lane) SELECT "
            "'user-' || (1 + (random() * %s)::int), 'approval', 'approval:' || g, "
            "CASE WHEN %s THEN 'subject:' || g END, repeat('x', 300), g %% %s "
            "FROM generate_series(%s::int, %s::int) g",
            (PRINCIPALS - 1, self.subjects, TENANTS, first, first + rows - 1))

    def position(self, row):
        return row[0]

    def claim(self, batch):
        self.batch, lanes = uuid.uuid4(), list(range(TENANTS))
        marks = [self.marks.get(lane, START) for lane in lanes]
        rows, cost = self.run(reference.CLAIM, dict(
            p=1, cr=0, lanes=lanes, credits=credits(batch), lwd=[mark[0] for mark in marks],
            lwi=[mark[1] for mark in marks], batch=self.batch, owner=self.owner,
            len=datetime.timedelta(seconds=30), per_row=100))
        for row in rows:
            self.marks[row[2]] = max(self.marks.get(row[2], START), (row[3], row[1]))
        return rows, cost

    def settle(self, part, returned, mask):
        size, back = len(part), len(returned)
        return self.run(reference.SETTLE, dict(
            batch=self.batch, owner=self.owner, p=1, mask=mask, lid=[time_ordered() for _ in part],
            ln=[row[1] for row in part], ld=[row[10] for row in part], la=[row[4] for row in part], lf=[True] * size,
            lo=["delivered"] * size, lr=[None] * size, ly=[None] * size, bp=[row[0] for row in returned],
            bd=[datetime.timedelta(hours=1)] * back, ba=[1] * back, bpr=[True] * back, bc=[0] * back,
            bcl=[True] * back, ep=[], er=[]))[1]


class Real(Side):
    """The migrated schema with the worker's own statements."""

    cursors = psycopg.RawCursor
    claim_text, settle_text = statement("ClaimStatement"), statement("SettleStatement")
    search_text = statement("WaitingStatement")

    def bytes_since(self):
        return "SELECT pg_current_wal_insert_lsn() - $1"

    def make_schema(self):
        run = self.producer.execute
        migrate(self.producer)
        run("SELECT postbell.define_kind('approval', 'template', "
            "'{\"a\": \"slug!\", \"b\": \"slug!\", \"c\": \"slug!\"}', '{\"title\": \"Approve\"}')")
        run("INSERT INTO postbell.tenants (tenant_id) SELECT 'tenant-' || g FROM generate_series(1, $1) g", (TENANTS,))
        run("INSERT INTO postbell.routes (provider, environment, app) "
            "VALUES ('apns', 'production', 'com.example.app')")
        self.route = run("SELECT max(route_no) FROM postbell.routes").fetchone()[0]
        # one tenant per principal, so that the targets of a row are as many as in the sketch
        run("INSERT INTO postbell.devices (id, tenant_id, principal_id, client_device_id, provider, environment, app,"
            " route_no, token, token_seq, token_registered_at, success_due_at)"
            " SELECT postbell.uuid7(), 'tenant-' || (1 + g % $2), 'user-' || g, 'phone', 'apns', 'production',"
            " 'com.example.app', $3, md5(g::text) || md5(g::text), 1, now(), 'infinity'"
            " FROM generate_series(1, $1) g", (PRINCIPALS, TENANTS, self.route))
        tenants = "SELECT tenant_no FROM postbell.tenants WHERE tenant_id <> 'default' ORDER BY 1"
        self.tenants = [row[0] for row in run(tenants)]

    def insert(self, first, rows):
        self.producer.execute(
            "INSERT INTO postbell.outbox (tenant_id, principal_id, kind, dedupe_key, subject, payload) SELECT"
            " 'tenant-' || (1 + g % $3), 'user-' || g, 'approval', 'approval:' || n,"
            " CASE WHEN $4 THEN 'subject:' || n END,"
            " replace('{\"a\": \"*\", \"b\": \"*\", \"c\": \"*\"}', '*', repeat('x', 90))"
            " FROM (SELECT n, 1 + (random() * $2)::int AS g FROM generate_series($1::int, $5::int) n) s",
            (first, PRINCIPALS - 1, TENANTS, self.subjects, first + rows - 1))

    def position(self, row):
        return row[0]

    def search(self):
        """Microseconds that one search for shares with work costs."""
        return self.run(self.search_text, ([self.route], [-1], [-1], [-1], 64))[1]

    def queued(self):
        """Rows that wait."""
        return self.producer.execute("SELECT count(*) FROM postbell.queue").fetchone()[0]

    def claim(self, batch):
        self.batch = uuid.uuid4()
        marks = [self.marks.get(tenant, START) for tenant in self.tenants]
        rows, cost = self.run(self.claim_text, (
            self.route, 0, [0] * TENANTS, self.tenants, credits(batch), [mark[0] for mark in marks],
            [mark[1] for mark in marks], self.batch, self.owner, datetime.timedelta(seconds=30), 100))
        for row in rows:
            self.marks[row[2]] = max(self.marks.get(row[2], START), (row[4], row[1]))
        return rows, cost

    def settle(self, part, returned, mask):
        # What no row has, the worker leaves out: waits, reasons and the provider's own ids.
        size, back, now = len(part), len(returned), datetime.datetime.now(datetime.timezone.utc)
        return self.run(self.settle_text, (
            self.batch, self.owner, self.route, mask, 1, [time_ordered() for _ in part], [row[1] for row in part],
            [row[18] for row in part], [row[20] for row in part], [row[2] for row in part],
            [row[5] for row in part], [0] * size, [True] * size, [], [200] * size, [],
            [], [now] * size, [1500] * size, [row[0] for row in returned], [3_600_000] * back, [1] * back,
            [0] * back, [True] * back, [], [], [], []))[1]


def credits(batch):
    return [batch // TENANTS + (1 if index < batch % TENANTS else 0) for index in range(TENANTS)]
