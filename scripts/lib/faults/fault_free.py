"""Very many notifications while nothing fails: each is accepted exactly once."""

from sized import Sized

PEOPLE = 10_000
LIMIT = 1800  # seconds for all to be sent, on a machine that does other things as well
# The longest request is far from its limit, however busy the machine.
SETTINGS = {"POSTBELL_LEASE": "30s", "POSTBELL_REQUEST_TIMEOUT": "20s", "POSTBELL_CONCURRENCY": "500"}
ENQUEUE = f"""
INSERT INTO postbell.outbox (principal_id, kind, dedupe_key, subject, payload)
SELECT 'p-' || (1 + g %% {PEOPLE}), 'fault', 'sized-' || g, 'run:' || g,
    '{{"run_id": "00000000-0000-4000-8000-' || lpad(g::text, 12, '0') || '"}}'
FROM generate_series(%(first)s::int, %(last)s::int) g
RETURNING id::text, extract(epoch FROM expires_at)::float8
"""


class FaultFree(Sized):
    def register_devices(self):
        self.register(PEOPLE)


def run(options):
    with FaultFree(options, "fault-free", [], ENQUEUE, SETTINGS) as scene:
        enqueued, sent = scene.wait_until_sent(LIMIT)
        census = scene.census()
        counts = census.counts
        for what, number in (("duplicates", counts["duplicate"]), ("refused requests", census.refused),
                             ("lost outcomes", counts["unknown"]), ("expired", counts["expired"])):
            if number:
                scene.faults.append(f"{what}: {number}")
        return scene.say(
            f"committed {census.committed}, accepted {census.accepted}, duplicate {counts['duplicate']}, lost "
            f"{counts['lost']}, untrue {counts['untrue']}, unknown {counts['unknown']}, {scene.audit()}, enqueued in "
            f"{enqueued:.0f} s and sent in {sent:.0f} s ({census.committed / sent:.0f} a second)")
