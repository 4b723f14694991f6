"""The server stops as in a crash and comes back; and a standby takes over from it."""

import signal
import time

from cluster import Cluster
from scene import ROLE, Scene, cpu_seconds

# Seconds that the server is away. After the longest, sessions wait longest between two attempts to connect.
OUTAGES = (2, 4, 25)
BACK, CPU = 5, 0.05  # seconds from the server's return to the first request; share of a core during the outage


def restart(options):
    """Immediate stops: how soon work begins again, and what waiting costs."""
    # The attempts that go on failing are said at the level of debugging.
    with Scene(options, "restart", settings={"POSTBELL_LOG_LEVEL": "debug"}) as scene:
        waits, highest, attempts = [], 0.0, 0
        for seconds in OUTAGES:
            time.sleep(3)
            scene.primary.stop(signal.SIGQUIT)
            began, before = time.time(), [cpu_seconds(worker.pid) for worker in scene.running]
            time.sleep(seconds)
            ended = time.time()
            used = max(cpu_seconds(worker.pid) - cpu for worker, cpu in zip(scene.running, before)) / seconds
            tried = most_attempts(scene, began, ended)
            highest, attempts = max(highest, used), max(attempts, tried)
            if used > CPU:
                scene.faults.append(f"a worker took {100 * used:.1f} % of a core during {seconds} s without a server")
            if tried > 3 * (8 + seconds / 2.5):  # three sessions, each waiting twice as long after each failure
                scene.faults.append(f"a worker tried to connect {tried} times within {seconds} s")
            back = scene.primary.start()
            scene.look()
            first = scene.first_request_after(back, 30)
            sessions = sessions_back(scene, back)
            waits.append(f"{seconds} s: {scene.check_recovery('first request', first, BACK)}, all sessions "
                         f"{scene.check_recovery('all sessions', sessions, BACK)}")
        return scene.finish(
            {"restart": len(OUTAGES)}, f"first request and all sessions of both workers after an outage of "
            f"{'; '.join(waits)} (at most {BACK} s), CPU of a worker meanwhile {100 * highest:.1f} % of a core, "
            f"attempts to connect {attempts} at most")


def sessions_back(scene, instant):
    """Seconds until both sessions of every worker stood again after `instant`; None when they did not within 30."""
    while time.time() < instant + 30:
        up = [[at for at in scene.said("database session is up", number) if at >= instant] for number in (1, 2)]
        if all(len(times) >= 2 for times in up):
            return max(times[1] for times in up) - instant
        time.sleep(0.2)
    return None


def most_attempts(scene, began, ended):
    """Attempts to connect of the worker that made most."""
    words = ("database session is down", "notifications are lost until the session is back")
    return max(sum(began <= at < ended for text in words for at in scene.said(text, number)) for number in (1, 2))


class Pair(Scene):
    """A primary and a standby that streams from it; everybody knows both addresses."""

    def __init__(self, options, name):
        super().__init__(options, name)
        self.standby = Cluster(options, f"{name}-2", self.folder / "standby.log")
        self.clusters.append(self.standby)
        self.old = self.primary

    def prepare(self):
        self.standby.follow(self.primary)
        self.standby.start()

    def both(self, user):
        hosts = f"{self.old.socket},{self.standby.socket}"
        return (f"host={hosts} port=5432,5432 user={user} dbname={self.database} "
                "target_session_attrs=read-write connect_timeout=2")

    def worker_connection(self):
        return self.both(ROLE)

    def load_connection(self):
        return self.both("postgres")

    def fail_over(self):
        """The primary is gone for good; answers when it went and when the standby took writes."""
        self.old.stop(signal.SIGQUIT)
        gone = time.time()
        time.sleep(3)
        self.standby.execute("SELECT pg_promote(true, 30)")
        self.primary = self.standby
        taken = time.time()
        self.look()
        return gone, taken


def synchronous(options):
    """Each commit waits for the standby: nothing is lost."""
    with Pair(options, "failover-sync") as pair:
        pair.primary.set("synchronous_standby_names", "standby")
        time.sleep(4)
        state = pair.primary.execute("SELECT sync_state FROM pg_stat_replication")
        if state != [("sync",)]:
            pair.faults.append(f"the standby was not synchronous: {state}")
        gone, taken = pair.fail_over()
        wait = pair.check_recovery("first request after promotion", pair.first_request_after(taken, 30), BACK)
        time.sleep(4)
        return pair.finish({"failover": 1}, f"no server for {taken - gone:.1f} s, first request {wait} after promotion "
                           f"(at most {BACK} s)")


def asynchronous(options):
    """The standby has missed the last seconds. What was committed in them is lost with the database, and named."""
    with Pair(options, "failover-async") as pair:
        time.sleep(4)
        pair.standby.set("primary_conninfo", "")  # ships no more
        cut = time.time()
        time.sleep(3)
        gone, taken = pair.fail_over()
        wait = pair.check_recovery("first request after promotion", pair.first_request_after(taken, 30), BACK)
        time.sleep(4)
        # In this order, because the load goes on: what was printed or sent by now is in the outbox by then.
        committed, arrived = pair.committed_at(), pair.arrivals()
        known = {row[0] for row in pair.watcher.execute("SELECT id::text FROM postbell.outbox")}
        missing = {name for name in committed if name not in known}
        early = [name for name in missing if not cut - 1 <= committed[name] <= gone + 1]
        if early:
            pair.faults.append(f"{len(early)} ids are lost that were committed while the standby followed")
        if not missing:
            pair.faults.append("nothing was lost with the database: the fault did not happen")
        # Sent, and unknown to the database: what it lost, also of what no producer was told of.
        orphans = [arrival for arrival in arrived if arrival.apns_id not in known]
        late = [arrival for arrival in orphans if not cut - 1 <= arrival.at <= gone + 3]
        if late:
            pair.faults.append(f"{len(late)} requests for what the database does not know, outside the lost time")
        sent = {arrival.apns_id for arrival in orphans}
        (pair.folder / "lost-with-the-database").write_text("".join(
            f"{name} {'committed' if name in missing else 'not acknowledged'}, "
            f"{'accepted by the provider' if name in sent else 'not sent'}\n" for name in sorted(missing | sent)))

        def excuse(first, second):
            """The ledger row of the first was in what is lost."""
            return "lost ledger" if cut - 3 <= first.at <= gone + 3 else None

        return pair.finish(
            {"failover": 1},
            f"lost with the database {len(missing)} committed and {len(sent - missing)} unacknowledged (named in "
            f"lost-with-the-database), of which the provider has accepted {len(sent)}, shipping had stopped "
            f"{gone - cut:.1f} s before, first request {wait} after promotion (at most {BACK} s)",
            excuse=excuse, gone=missing | sent)
