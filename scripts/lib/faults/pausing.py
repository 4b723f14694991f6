"""A process that listens is paused: nobody reads what its backend has to send."""

import signal
import threading
import time

import psycopg

from scene import Scene, one

# More than a socket takes: what comes after them waits in the server's queue of notifications.
NOTIFICATIONS, TOGETHER = 50_000, 200
HELD = 10   # seconds for which it stays so
FOUND = 15  # seconds in which its backend is gone once a watchdog has ended it
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'postbell listen'"
# Whether it cannot write, and whether that keeps rows from being vacuumed.
BLOCKED = """
SELECT count(*) FILTER (WHERE wait_event = 'ClientWrite'),
    count(*) FILTER (WHERE wait_event = 'ClientWrite' AND backend_xmin IS NOT NULL)
FROM pg_stat_activity WHERE pid = %s
"""


class Watched(Scene):
    def prepare(self):
        self.watcher.execute("CREATE ROLE stranger LOGIN")

    def listeners(self):
        return {row[0] for row in self.watcher.execute(LISTENERS)}


def paused(options):
    """Producers commit, the other workers send, and the queue of notifications stays almost empty meanwhile."""
    with Watched(options, "paused", rate=40) as scene:
        others = scene.listeners()
        worker = scene.start_worker()
        scene.running.append(worker)
        backend = await_one(lambda: scene.listeners() - others)
        worker.process.send_signal(signal.SIGSTOP)
        began = time.time()
        flood = threading.Thread(target=notify, args=(scene.connection("stranger"),))
        flood.start()
        blocked, holding, end = 0, 0, time.monotonic() + HELD
        while time.monotonic() < end:
            row = scene.watcher.execute(BLOCKED, [backend]).fetchone()
            blocked, holding = blocked + row[0], holding + row[1]
            time.sleep(0.1)
        flood.join()
        ended = time.time()
        if holding:
            scene.faults.append(f"{holding} samples found its backend with a snapshot")
        committed = sum(began <= at < ended for at in scene.committed_at().values())
        sent = scene.requests_between(began, ended)
        if committed < 10 * HELD or sent < 10 * HELD:
            scene.faults.append(f"while it was paused {committed} were committed and {sent} sent")
        usage = one(scene.watcher, "SELECT pg_notification_queue_usage()")
        worker.process.kill()  # as the service manager's watchdog does
        worker.process.wait()
        scene.running.remove(worker)
        gone = time.monotonic()
        while backend in scene.listeners() and time.monotonic() < gone + 2 * FOUND:
            time.sleep(0.05)
        found = scene.check_recovery("its backend is gone", time.monotonic() - gone, FOUND)
        return scene.finish(
            {"paused listener": 1, "notification to it": NOTIFICATIONS, "backend seen unable to write": blocked},
            f"committed {committed} and sent {sent} within {HELD} s of it, queue of notifications {100 * usage:.4f} % "
            f"full then, its backend gone {found} after the process (at most {FOUND} s)")


def await_one(find):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = find()
        if found:
            return found.pop()
        time.sleep(0.05)
    raise SystemExit("the third worker does not listen")


def notify(connection):
    with psycopg.connect(connection, autocommit=True) as session:
        for first in range(0, NOTIFICATIONS, TOGETHER):
            session.execute("SELECT pg_notify('postbell', g::text) FROM generate_series(%s::int, %s::int) g",
                            [first, first + TOGETHER - 1])
