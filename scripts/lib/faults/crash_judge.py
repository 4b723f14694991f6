"""What became of a round of the crash matrix: the ids that the producer committed, the ledger, the log of the fake
provider and the record of all leases are joined, and whatever does not fit is a fault.

    lost           a committed notification that has not ended, or not for each of its person's devices
    untrue         ledger and provider disagree about a push to one device: the ledger knows an answer that the provider
                   did not give, or fewer attempts than the provider saw requests
    unclaimed      a request for whose device no claim had been committed
    fenced         two live leases of one notification, a claim of what has ended, a ledger row that was changed, or
                   that came after its lease and is not late (crash_witness.sql has seen these); or a request after
                   its lease had ended, but for one that its worker had in hand when it was paused, or had cut
                   off and settled as lost
    unexplained    accepted twice, and nothing says that the first may have been lost (witnesses.py)
"""

import collections
import datetime
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "soak"))
import witnesses  # noqa: E402

# The provider's clock is this machine's; it notes a request a little after it came.
SLACK = 0.02
# What an answer that never came stands for at the provider: it may have been carried out.
UNANSWERED = 0

Enqueued = collections.namedtuple("Enqueued", "devices ends")  # devices that must get it; statuses it may end in
Request = collections.namedtuple("Request", "at name device status collapse")
Row = collections.namedtuple("Row", "at notification device batch outcome reason final late status")
Lease = collections.namedtuple("Lease", "batch claimed_at until ended_at targets")


def seconds(text):
    """Seconds since 1970 of an instant in the provider's log."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Judgement:
    """`paused`: a worker was stopped and went on while it had requests in hand, so that these may go out late."""

    def __init__(self, committed, statuses, ledger, requests, leases, violations, paused=False):
        self.committed, self.statuses, self.paused = committed, statuses, paused
        self.faults, self.counts = [], collections.Counter()
        self.rows, self.sent = collections.defaultdict(list), collections.defaultdict(list)
        for row in ledger:
            self.rows[row.notification, row.device].append(row)
        for request in sorted(requests, key=lambda request: request.at):
            self.sent[request.name, request.device].append(request)
        self.leases = collections.defaultdict(list)
        for lease in leases:
            for target in lease.targets:
                self.leases[target].append(lease)
        for what in violations:
            self.fault("fenced", what)
        self.judge_ends()
        self.judge_ledger()
        self.judge_claims()
        self.judge_duplicates(witnesses.lapsed_batches(ledger))
        self.count(ledger)

    def fault(self, kind, text):
        self.counts[kind] += 1
        self.faults.append(f"{kind}: {text}")

    def judge_ends(self):
        for name, enqueued in self.committed.items():
            status = self.statuses.get(name)
            if status not in enqueued.ends:
                self.fault("lost", f"{name} is {status}")
            elif status == "dispatched":
                missing = [device for device in enqueued.devices
                           if not any(row.outcome == "delivered" for row in self.rows.get((name, device), ()))]
                if missing:
                    self.fault("lost", f"{name} is dispatched and not delivered to {missing}")
        for name in self.statuses.keys() - self.committed.keys():
            self.fault("lost", f"{name} is in the outbox and was never committed")
        for name, device in self.sent.keys():
            if name not in self.committed:
                self.fault("unclaimed", f"{name} was sent to device {device} and never committed")

    def judge_ledger(self):
        for target in self.sent.keys() | self.rows.keys():
            asked = collections.Counter(request.status for request in self.sent.get(target, ()))
            rows = [row for row in self.rows.get(target, ()) if row.outcome != "skipped"]
            told = collections.Counter(200 if row.outcome == "delivered" else row.status for row in rows
                                       if row.outcome == "delivered" or row.status)
            for status, count in told.items():
                if count > asked[status]:
                    self.fault("untrue", f"{target}: {status} {count} times, {asked[status]} times at the provider")
            if asked.total() > len(rows):
                self.fault("untrue", f"{target}: {asked.total()} requests, {len(rows)} ledger rows")

    def judge_claims(self):
        for target, requests in self.sent.items():
            for request in requests:
                before = [lease for lease in self.leases[target] if lease.claimed_at <= request.at + SLACK]
                if not before:
                    self.fault("unclaimed", f"{target}: a request before any claim")
                elif not any(self.is_live(lease, request.at - SLACK) for lease in before):
                    self.counts["stale"] += 1
                    if not self.paused and not self.was_cut_off(target, before[-1]):
                        self.fault("fenced", f"{target}: a request after its lease")

    @staticmethod
    def is_live(lease, at):
        return lease.until >= at and (lease.ended_at is None or lease.ended_at >= at)

    def was_cut_off(self, target, lease):
        """Whether the worker itself has settled the request as lost, in time: it had left, and may arrive later."""
        return any(row.batch == lease.batch and row.outcome == "unknown" and not row.late and row.reason != "lease_lost"
                   for row in self.rows[target])

    def judge_duplicates(self, lapsed):
        """Each further acceptance needs, before it, one more attempt whose outcome was lost."""
        for target, requests in self.sent.items():
            accepted = [request for request in requests if request.status in (200, UNANSWERED)]
            lost = [row.at for row in self.rows[target] if row.outcome == "unknown" or row.batch in lapsed]
            for number, again in enumerate(accepted[1:], 1):
                self.counts["duplicate"] += 1
                if sum(at <= again.at + SLACK for at in lost) < number:
                    self.fault("unexplained", f"{target} was accepted again and nothing explains it")
                if not again.collapse or again.collapse != accepted[0].collapse:
                    self.fault("unexplained", f"{target} was accepted again under another collapse id")

    def count(self, ledger):
        self.counts["settled"] = sum(self.statuses.get(name) in enqueued.ends
                                     for name, enqueued in self.committed.items())
        self.counts["accepted"] = sum(request.status == 200 for requests in self.sent.values() for request in requests)
        self.counts["unknown"] = sum(row.outcome == "unknown" for row in ledger)
        self.counts["superseded"] = sum(status == "superseded" for status in self.statuses.values())
        self.counts["late"] = sum(row.late for row in ledger)

    @property
    def line(self):
        names = ("settled", "accepted", "duplicate", "unknown", "late", "superseded", "lost", "untrue", "unclaimed",
                 "fenced", "unexplained", "stale")
        return f"committed {len(self.committed)}, " + ", ".join(f"{name} {self.counts[name]}" for name in names)
