"""One lane that is never answered and one that is answered slowly: what they cost the others."""

import statistics
import time

from stand import KEY, TEAM, TOPIC, Stand, say

SCENARIO = ["apns silence topic com.example.hole", "apns slow 2s topic com.example.slow"]
ROUNDS, SECONDS, RATE = 3, 10, 300
FACTOR = 1.5
# Credentials of one key file: what makes a lane is the credential, not the key.
CREDENTIALS = {"POSTBELL_APNS_CREDENTIALS": "hole,slow", "POSTBELL_REQUEST_TIMEOUT": "5s"}

LATENCY = """
SELECT 1000 * percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM
    d.attempted_at + d.answer_us * interval '1 microsecond' - o.created_at))
FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
WHERE d.outcome = 0 AND o.dedupe_key LIKE %(key)s
"""


def run(options):
    with Stand(options, "isolation", SCENARIO) as stand:
        for name, topic in (("good", TOPIC), ("hole", "com.example.hole"), ("slow", "com.example.slow")):
            stand.register(RATE * SECONDS, name=name, topic=topic)
        stand.start_fake()
        with stand.worker(**credentials(stand)):
            times = {"without": [], "with": []}
            for number in range(ROUNDS):
                for kind in times:
                    times[kind].append(measure(stand, f"{kind}-{number}", kind == "with"))
        held = stand.watcher.execute(
            "SELECT count(*) FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id "
            "WHERE o.principal_id LIKE 'hole-%' AND d.outcome = 0").fetchone()[0]
        without, with_them = (statistics.median(values) for values in times.values())
        faults = []
        if with_them > FACTOR * without:
            faults.append(f"p99 {with_them:.0f} ms, {with_them / without:.2f} times that without")
        if held:
            faults.append(f"{held} pushes of the black-holed lane were accepted: it was none")
        return say("isolation", f"p99 of a lane {with_them:.0f} ms beside a black-holed and a slow one, "
                   f"{without:.0f} ms without, medians of {ROUNDS} interleaved runs ({with_them / without:.2f} times, "
                   f"at most {FACTOR})", faults)


def credentials(stand):
    settings = dict(CREDENTIALS)
    for name in ("HOLE", "SLOW"):
        settings |= {f"APNS_{name}_KEY_FILE": str(stand.folder / "fake" / "apns.p8"),
                     f"APNS_{name}_KEY_ID": KEY, f"APNS_{name}_TEAM_ID": TEAM,
                     f"APNS_{name}_TOPIC": f"com.example.{name.lower()}"}
    return settings


def measure(stand, key, beside):
    """p99 from enqueued to answered of the good lane's rows, in milliseconds."""
    step = RATE // 10
    began = time.monotonic()
    for turn in range(SECONDS * 10):
        first, last = 1 + turn * step, (turn + 1) * step
        stand.enqueue(first, last, "good", more=f"-{key}")
        if beside:
            stand.enqueue(first, last, "hole", more=f"-{key}")
            stand.enqueue(first, last, "slow", more=f"-{key}")
        time.sleep(max(0.0, began + (turn + 1) / 10 - time.monotonic()))
    pending = ("SELECT count(*) FROM postbell.places p JOIN postbell.outbox o ON o.id = p.notification_id "
               "WHERE o.principal_id LIKE 'good-%'")
    end = time.monotonic() + 60
    while stand.watcher.execute(pending).fetchone()[0] and time.monotonic() < end:
        time.sleep(0.1)
    value = stand.watcher.execute(LATENCY, {"key": f"good-%-{key}"}).fetchone()[0]
    # What the other lanes still hold must not run into the next run.
    stand.watcher.execute("DELETE FROM postbell.queue WHERE notification_id IN "
                          "(SELECT id FROM postbell.outbox WHERE principal_id NOT LIKE 'good-%')")
    time.sleep(6)
    stand.watcher.execute("DELETE FROM postbell.queue WHERE notification_id IN "
                          "(SELECT id FROM postbell.outbox WHERE principal_id NOT LIKE 'good-%')")
    return float(value)
