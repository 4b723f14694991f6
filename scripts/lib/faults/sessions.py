"""What happens to single sessions: ended or cancelled by the server, answers that are lost, connections half-open."""

import random
import time

from dropping import BlackHole, hindrance
from scene import ROLE, Scene, wait_until
from wire import Wire, first_number

# A session of a worker that carries out a claim, a settle or another statement of this text at this moment.
STRIKE = """
SELECT {function}(pid) FROM (
    SELECT pid FROM pg_stat_activity
    WHERE usename = %(role)s AND state = 'active' AND query ~ %(text)s ORDER BY random() LIMIT 1) s
"""
CLAIM, SETTLE = "WITH candidate AS MATERIALIZED", "-- the fence: the lease in its newest version"
STRIKES = 20  # of each kind
FOUND = 15    # seconds in which a half-open session is found
LEASE = {"POSTBELL_LEASE": "30s"}  # the default: longer than that


def terminate(options):
    """Backends ended, and statements cancelled, in the middle of claims and settles."""
    draws = random.Random(11)
    fired = {}
    with Scene(options, "terminate", rate=300) as scene:
        wanted = {(function, name): STRIKES for function in ("pg_cancel_backend", "pg_terminate_backend")
                  for name in (CLAIM, SETTLE)}
        end = time.monotonic() + 240
        while wanted and time.monotonic() < end:
            function, text = draws.choice(list(wanted))
            hits = scene.watcher.execute(STRIKE.format(function=function), {"role": ROLE, "text": text}).rowcount
            if hits:
                key = f"{function.split('_')[1]} in {'claim' if text == CLAIM else 'settle'}"
                fired[key] = fired.get(key, 0) + hits
                wanted[function, text] -= hits
                if wanted[function, text] <= 0:
                    del wanted[function, text]
                time.sleep(draws.uniform(0, 0.3))
        if wanted:
            scene.faults.append(f"too few strikes: {wanted}")
        lost, cancelled = scene.logged("57P01"), scene.logged("57014")
        if not lost or not cancelled:
            scene.faults.append(f"no statement noticed it: 57P01 {lost}, 57014 {cancelled}")
        return scene.finish(fired, f"statements that failed by it {cancelled} cancelled and {lost} ended")


# Answers so late that leases are renewed meanwhile.
SLOW = ["apns delay 2600ms"]
RENEWED = {"POSTBELL_LEASE": "7s", "POSTBELL_REQUEST_TIMEOUT": "4s", "POSTBELL_CONCURRENCY": "1000"}
ROUNDS = 5


def replies(options):
    """Answers to claim, settle, renew and recover that are lost after the commit."""
    with Scene(options, "replies", SLOW, settings=RENEWED, wire=Wire) as scene:
        wire = scene.wire
        for _ in range(ROUNDS):
            for statement in ("claim", "settle", "renew"):
                before = wire.lost[statement]
                wire.lose(statement, 2)
                wait_until(f"answers of {statement} are lost", lambda: wire.lost[statement] == before + 2, 60)
            time.sleep(1)
        twice = second_sends(scene)
        if twice:
            scene.faults.append(f"{twice} pushes were sent again although no worker has died")
        # A worker dies, so that there is something to recover.
        scene.running[0].process.kill()
        scene.running[0].process.wait()
        wire.lose("recover", 1, matters=lambda answer: first_number(answer) > 0)
        scene.running[0] = scene.start_worker()
        wait_until("the answer of a recovery is lost", lambda: wire.lost["recover"] == 1, 60)
        fired = {f"lost answer of {name}": wire.lost[name] for name in ("claim", "settle", "renew", "recover")}
        return scene.finish(fired, f"second sends before the death of a worker {twice}")


def second_sends(scene):
    seen, twice = set(), 0
    for arrival in scene.arrivals():
        twice += arrival.apns_id in seen
        seen.add(arrival.apns_id)
    return twice


def half_open(options):
    """Connections that stay open and on which nothing passes: those of the statements, then that of LISTEN; then all
    packets dropped, for the kernel to notice."""
    reason = hindrance(options)
    if reason:
        print(f"half-open: NOT SHOWN, packets cannot be dropped: {reason}", flush=True)
        return [f"half-open: not shown: {reason}"]
    fired, found = {}, []
    with Scene(options, "half-open", settings=LEASE, wire=Wire) as scene:
        for application, what in (("postbell dispatch", "sessions of the store"), ("postbell listen", "LISTEN")):
            began = time.time()
            fired[f"half-open {what}"] = scene.wire.swallow(application)
            found.append(f"{what} " + scene.check_recovery(f"half-open {what} found", gone_after(scene, began), FOUND))
            first = scene.first_request_after(began + 2, 40)
            if application == "postbell dispatch":
                found.append("first request " + scene.check_recovery("first request", first and first + 2, FOUND + 5))
            time.sleep(5)
        with BlackHole(scene.wire.port) as hole:
            began = time.time()
            time.sleep(FOUND + 10)
            told = min((at for at, text, _ in scene.log_lines() if at >= began
                        and text.startswith("database session is down")), default=None)
            found.append("dropped packets " + scene.check_recovery(
                "dropped packets noticed", told and told - began, FOUND))
            fired["dropped packet"] = sum(hole.dropped())
        ended = time.time()
        found.append("first request after packets pass again " + scene.check_recovery(
            "first request", scene.first_request_after(ended, 40), 10))
        return scene.finish(fired, f"found after: {', '.join(found)} (at most {FOUND} s)")


def gone_after(scene, began):
    """Seconds until no client holds a half-open connection any more."""
    while time.time() < began + 60:
        if not scene.wire.swallowed():
            return time.time() - began
        time.sleep(0.1)
    return None
