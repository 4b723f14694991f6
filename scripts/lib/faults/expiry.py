"""Very many notifications whose deadlines pass wherever they are: none is accepted later, and each reaches its end."""

from sized import Sized
from stand import TOPIC

PEOPLE, FEW = 10_000, 500
PAUSED, UNSERVED = "com.example.paused", "com.example.unserved"
# Of a hundred rows so many wait on a route that is paused, and on one that nobody serves.
SHARE = 3
LIMIT = 2400
# One topic is refused, and paused for it; every request of some seconds fails, and some at any time; some answers are
# later than many a deadline, and now and then all of them, so that what is in hand waits; some requests are cut off.
SCENARIO = [f"apns answer 400 TopicDisallowed topic {PAUSED}", "apns answer 503 from 40s to 55s",
            "apns answer 503 rate 4%", "apns slow 3s rate 1%", "apns reset rate 0.1%",
            *(f"apns slow 2500ms from {at}s to {at + 1}s" for at in range(20, 300, 10)), "apns slow 100ms"]
# Fewer in flight than come: many deadlines pass in the queue.
SETTINGS = {"APNS_TOPIC": f"{TOPIC},{PAUSED}", "POSTBELL_LEASE": "20s", "POSTBELL_REQUEST_TIMEOUT": "10s",
            "POSTBELL_CONCURRENCY": "200", "POSTBELL_RETRY": ",".join(["1s"] * 20), "POSTBELL_APNS_5XX_DELAY": "1s",
            "POSTBELL_RETRY_BUDGET": "50%"}
LONGEST = 120  # seconds: deadlines are spread evenly from 0.2 s up to here
ENQUEUE = f"""
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload, expires_at)
SELECT CASE WHEN g %% 100 < {SHARE} THEN 'paused-' || (1 + g / 100 %% {FEW})
        WHEN g %% 100 < {2 * SHARE} THEN 'unserved-' || (1 + g / 100 %% {FEW})
        ELSE 'p-' || (1 + g %% {PEOPLE}) END,
    'fault', 'sized-' || g, 'run:' || g,
    '{{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}}',
    now() + (0.2 + random() * {LONGEST}) * interval '1 s'
FROM generate_series(%(first)s::int, %(last)s::int) g
RETURNING id::text, extract(epoch FROM expires_at)::float8
"""
# Where they were when their deadline passed.
WHERE = f"""
WITH ended AS (
    SELECT s.notification_id, r.app FROM postbell.settlements s JOIN postbell.routes r USING (route_no)
    WHERE s.status = 'expired'
),
told AS (
    SELECT d.notification_id, bool_or(d.outcome IN (3, 6)) AS failed, bool_or(d.outcome = 7) AS fell_out
    FROM postbell.deliveries d
    WHERE d.outcome <> 0
    GROUP BY 1
)
SELECT
    count(*) FILTER (WHERE e.app = '{TOPIC}' AND t.notification_id IS NULL) AS waiting,
    count(*) FILTER (WHERE e.app = '{TOPIC}' AND t.fell_out AND NOT t.failed) AS claimed,
    (SELECT count(*) FROM postbell.deliveries d JOIN postbell.outbox o ON o.id = d.notification_id
        WHERE d.outcome = 0 AND d.attempted_at <= o.expires_at
            AND d.attempted_at + d.answer_us * interval '1 microsecond' > o.expires_at) AS in_flight,
    count(*) FILTER (WHERE e.app = '{TOPIC}' AND t.failed) AS trying_again,
    count(*) FILTER (WHERE e.app = '{PAUSED}') AS paused,
    count(*) FILTER (WHERE e.app = '{UNSERVED}') AS unserved
FROM ended e
LEFT JOIN told t USING (notification_id)
"""


class Expiring(Sized):
    def register_devices(self):
        self.register(PEOPLE)
        self.register(FEW, name="paused", topic=PAUSED)
        self.register(FEW, name="unserved", topic=UNSERVED)


def run(options):
    with Expiring(options, "expiry", SCENARIO, ENQUEUE, SETTINGS) as scene:
        enqueued, ended = scene.wait_until_sent(LIMIT)
        census = scene.census()
        counts = census.counts
        cursor = scene.watcher.execute(WHERE)
        where = dict(zip((column.name for column in cursor.description), cursor.fetchone()))
        if not all(where.values()) or not counts["dispatched"]:
            scene.faults.append(f"nowhere near all places were tried: {where}, dispatched {counts['dispatched']}")
        places = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in where.items())
        return scene.say(
            f"committed {census.committed}, accepts later than 1 s after the deadline {counts['late']} (latest "
            f"{census.latest:+.3f} s), dispatched {counts['dispatched']}, expired {counts['expired']}, deadlines "
            f"passed while {places}, accepted {census.accepted}, refused {census.refused}, unknown "
            f"{counts['unknown']}, duplicate {counts['duplicate']}, unexplained {counts['unexplained']}, lost "
            f"{counts['lost']}, untrue {counts['untrue']}, {scene.audit()}, enqueued in {enqueued:.0f} s, all ended in "
            f"{ended:.0f} s")
