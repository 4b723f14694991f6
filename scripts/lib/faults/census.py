"""What three witnesses say of very many notifications, each for one device: counted as they are read, some 150 bytes
for each notification, and nothing of their words is kept.

    lost         committed, and neither accepted and `dispatched`, nor `expired` as its deadline allows; an `expired`
                 one may have been accepted only where the ledger says that an outcome was lost
    late         accepted more than a second after the deadline
    unexplained  accepted once more than the ledger has lost outcomes for
    untrue       ledger and provider disagree: more answers on the ledger than requests at the provider, or requests of
                 which the ledger has no row
    strange      anything about a notification that nobody has committed
"""

import collections
from array import array

GRACE = 1.0  # seconds after its deadline at which a request may still arrive at the provider
FOREVER = float("inf")
STATUSES = ("", "pending", "dispatched", "expired", "failed", "superseded", "cancelled")
NAMED = 5  # notifications that are named of each kind of fault


class Census:
    """`commit` what the producer has committed, then `arrive`, `row` and `end` what the others have seen, then `judge`.
    `asked`, `accepted`: requests, and those of them that may have rung. `latest`: seconds between the deadline and the
    request that came latest after its own; negative when each came before."""

    def __init__(self):
        self.places, self.deadlines = {}, array("d")
        self.asked_of, self.accepts_of, self.told_of, self.lost_of, self.statuses = (bytearray() for _ in range(5))
        self.asked, self.accepted, self.refused, self.rows, self.latest = 0, 0, 0, 0, -FOREVER
        self.counts, self.faults = collections.Counter(), []

    @property
    def committed(self):
        return len(self.places)

    def commit(self, name, deadline=FOREVER):
        self.places[key(name)] = len(self.deadlines)
        self.deadlines.append(deadline)
        for counters in (self.asked_of, self.accepts_of, self.told_of, self.lost_of, self.statuses):
            counters.append(0)

    def arrive(self, name, at, accepted):
        """A request at the provider."""
        place = self.place(name, "a request for")
        if place is None:
            return
        self.asked += 1
        count(self.asked_of, place)
        if not accepted:
            self.refused += 1
            return
        self.accepted += 1
        count(self.accepts_of, place)
        after = at - self.deadlines[place]
        self.latest = max(self.latest, after)
        if after > GRACE:
            self.fault("late", f"{name} was accepted {after:.2f} s after its deadline")

    def row(self, name, outcome):
        """A ledger row; one that was skipped tells of no request."""
        place = self.place(name, "a ledger row of")
        if place is None or outcome == "skipped":
            return
        self.rows += 1
        count(self.told_of, place)
        if outcome == "unknown":
            self.counts["unknown"] += 1
            count(self.lost_of, place)

    def end(self, name, status):
        """The status that a notification has in the end."""
        place = self.place(name, "the outbox has")
        if place is not None:
            self.statuses[place] = STATUSES.index(status)
            self.counts[status] += 1

    def place(self, name, what):
        place = self.places.get(key(name))
        if place is None:
            self.fault("strange", f"{what} {name}, which nobody has committed")
        return place

    def fault(self, kind, text):
        self.counts[kind] += 1
        if self.counts[kind] <= NAMED:
            self.faults.append(f"{kind}: {text}")

    def judge(self):
        """Goes through all notifications once; answers what is wrong."""
        for name, place in self.places.items():
            accepts, lost, status = self.accepts_of[place], self.lost_of[place], STATUSES[self.statuses[place]]
            if accepts > 1:
                self.counts["duplicate"] += accepts - 1
                if accepts - 1 > lost:
                    self.fault("unexplained", f"{name.hex()} was accepted {accepts} times, lost outcomes {lost}")
            if not self.has_its_end(status, accepts, lost, self.deadlines[place]):
                self.fault("lost", f"{name.hex()} is {status or 'nowhere'}, accepted {accepts} times")
            asked, told = self.asked_of[place], self.told_of[place]
            if not told - lost <= asked <= told:
                self.fault("untrue", f"{name.hex()}: {asked} requests, {told} ledger rows, {lost} of them unknown")
        return self.faults + [f"{kind}: {number - NAMED} more of them" for kind, number in self.counts.items()
                              if kind in KINDS and number > NAMED]

    @staticmethod
    def has_its_end(status, accepts, lost, deadline):
        if status == "dispatched":
            return accepts > 0
        return status == "expired" and deadline < FOREVER and (accepts == 0 or lost > 0)


KINDS = ("lost", "late", "unexplained", "untrue", "strange")


def key(name):
    return bytes.fromhex(name.replace("-", ""))


def count(counters, place):
    """One more; from 255 on it stays."""
    counters[place] = min(255, counters[place] + 1)
