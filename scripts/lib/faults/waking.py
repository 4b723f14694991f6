"""Notifications that do not arrive, and a stranger who sends as many as they can."""

import signal
import threading
import time

import psycopg

from scene import ROLE, Scene, one
from wire import Wire

POLL, MARGIN = 1.0, 0.5  # seconds: the default, and what the way from a claim to the provider may take
FLOOD = 10
ASKED = 200  # statements a second of a worker in the flood: each batch of notifications is one look at the queue
CALLS = f"""
SELECT coalesce(sum(calls), 0)::int8 FROM pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
WHERE r.rolname = '{ROLE}'
"""


def notify(options):
    """No notification arrives: the poll finds the rows."""
    with Scene(options, "notify", rate=2, wire=Wire) as scene:
        scene.wire.drops_notifications = True
        time.sleep(30)
        highest = longest_delay(scene)
        if highest > POLL + MARGIN:
            scene.faults.append(f"a row waited {highest:.1f} s for its request, the poll is {POLL:g} s")
        return scene.finish({"suppressed notification": scene.wire.notifications},
                            f"longest wait of a row {highest:.2f} s (at most {POLL + MARGIN:g} s)")


def longest_delay(scene):
    sent = {}
    for arrival in scene.arrivals():
        sent.setdefault(arrival.apns_id, arrival.at)
    return max(sent[name] - at for name, at in scene.committed_at().items() if name in sent)


class Counted(Scene):
    """The server counts statements."""

    def prepare(self):
        self.primary.set_later("shared_preload_libraries", "pg_stat_statements")
        self.primary.stop(signal.SIGINT)
        self.primary.start()
        self.look()
        self.watcher.execute("CREATE EXTENSION pg_stat_statements")
        self.watcher.execute("CREATE ROLE stranger LOGIN")


def flood(options):
    """Notifications on our channel by a role that has no right at all."""
    with Counted(options, "flood", rate=10) as scene:
        calm = asked(scene)
        sent = []
        threads = [threading.Thread(target=send, args=(scene.connection("stranger"), sent)) for _ in range(2)]
        for thread in threads:
            thread.start()
        flooded = asked(scene)
        for thread in threads:
            thread.join()
        if flooded > ASKED:
            scene.faults.append(f"a worker sent {flooded:.0f} statements a second")
        return scene.finish({"stranger's notification": sum(sent)},
                            f"{sum(sent) / FLOOD:.0f} of them a second, statements of a worker {flooded:.1f} a second "
                            f"meanwhile (at most {ASKED}) and {calm:.1f} before")


def asked(scene):
    """Statements that a worker sends in a second, over most of the length of a flood."""
    before = one(scene.watcher, CALLS)
    time.sleep(FLOOD - 1)
    return (one(scene.watcher, CALLS) - before) / (FLOOD - 1) / 2


def send(connection, sent):
    count, end = 0, time.monotonic() + FLOOD
    with psycopg.connect(connection, autocommit=True) as session:
        while time.monotonic() < end:
            session.execute("SELECT pg_notify('postbell', g::text) FROM generate_series(1, 200) g")
            count += 200
    sent.append(count)
