"""Three witnesses of what became of a round's notifications, and whether they agree: the ids that the producer
committed, the worker's ledger, and the log of the fake provider, which none of the killed processes could touch.

When is a push that the provider accepted twice explained? Both requests carry one `apns-id` and one `apns-collapse-id`,
so the phone shows one; and between the two instants at which the provider took them there is either

  unknown  a ledger row `unknown` of this notification and device: a worker, or whoever recovered its lease, has said
           that the first request may have been answered; or
  lapsed   a ledger row of this notification and device whose batch is known to have lapsed, that is, any row of that
           batch is `late` (settled after the lease was gone) or has the reason `lease_lost` (written by the recovery).
           A lease itself leaves no trace when it ends; those two kinds of row are what a lapse leaves behind.

The instant of a ledger row is that of its time-ordered id. Worker, database and provider share this machine's clock.
"""

import bisect
import collections
import datetime
import json
import uuid

# An id counts whole milliseconds, and a worker's idea of the database's time is as old as its last answer.
SLACK = 0.01

Arrival = collections.namedtuple("Arrival", "at apns_id collapse_id token accepted")
LedgerRow = collections.namedtuple("LedgerRow", "at notification device batch outcome reason final late")

LEDGER = """
SELECT id, notification_id::text, device_no, batch::text, postbell.outcome_name(outcome), reason, final, late
FROM postbell.deliveries ORDER BY id
"""


def read_ledger(connection):
    """All rows of the ledger, oldest first."""
    return [LedgerRow(uuid_time(row[0]), *row[1:]) for row in connection.execute(LEDGER)]


def uuid_time(identifier):
    """Seconds since 1970 of a time-ordered id."""
    return (uuid.UUID(str(identifier)).int >> 80) / 1000


def read_arrivals(path, offset):
    """What the fake provider has logged from `offset` on."""
    return list(each_arrival(path, offset))


def each_arrival(path, offset=0):
    """The same one by one, for logs that are too long to be kept. No answer (status 0) may have rung the phone all the
    same."""
    with open(path, encoding="utf-8") as log:
        log.seek(offset)
        for line in log:
            entry = json.loads(line)
            at = datetime.datetime.fromisoformat(entry["time"].replace("Z", "+00:00")).timestamp()
            headers = entry["headers"]
            yield Arrival(at, headers.get("apns-id"), headers.get("apns-collapse-id"),
                          entry["path"].rsplit("/", 1)[1], entry["status"] in (0, 200))


class Verdict:
    """What three witnesses say together.

    `committed` maps each committed notification to the device numbers that it is for, `tokens` a device's token to its
    number, and `statuses` a notification to its status. `excuse` takes two arrivals of one target that the ledger
    does not explain and answers a cause all the same, or None. `faults` has a line for everything that is off.
    """

    def __init__(self, committed, tokens, statuses, ledger, arrivals, excuse=lambda first, second: None):
        self.faults, self.excuse = [], excuse
        self.committed = len(committed)
        self.settled = sum(statuses.get(name) == "dispatched" for name in committed)
        self.accepted = self.duplicate = self.unexplained = 0
        self.by_cause = collections.Counter()
        self.unknown = sum(row.outcome == "unknown" for row in ledger)
        self.late = sum(row.late for row in ledger)
        self.recovered = len({row.batch for row in ledger if row.reason == "lease_lost"})
        rows = collections.defaultdict(list)
        for row in ledger:
            rows[row.notification, row.device].append(row)
        sent = self.arrivals_by_target(arrivals, tokens)
        self.count_accepted(sent, rows, lapsed_batches(ledger))
        self.lost = sum(self.is_lost(name, devices, sent, statuses) for name, devices in committed.items())
        self.compare(committed, sent, rows)

    def arrivals_by_target(self, arrivals, tokens):
        sent = collections.defaultdict(list)
        for arrival in sorted(arrivals):
            if arrival.token not in tokens:
                self.faults.append("a request for a token that nobody registered")
            elif arrival.accepted:
                sent[arrival.apns_id, tokens[arrival.token]].append(arrival)
            else:
                self.faults.append(f"the provider refused {arrival.apns_id}")
        return sent

    def count_accepted(self, sent, rows, lapsed):
        for target, arrivals in sent.items():
            self.accepted += len(arrivals)
            for first, second in zip(arrivals, arrivals[1:]):
                self.duplicate += 1
                cause = explanation(first, second, rows[target], lapsed)
                if cause is None and same_push(first, second):
                    cause = self.excuse(first, second)
                if cause:
                    self.by_cause[cause] += 1
                else:
                    self.unexplained += 1
                    self.faults.append(f"{target[0]} reached device {target[1]} twice and nothing explains it")

    def is_lost(self, name, devices, sent, statuses):
        missing = [device for device in devices if not sent.get((name, device))]
        if missing or statuses.get(name) != "dispatched":
            self.faults.append(f"{name} is {statuses.get(name)}; devices without a request: {missing}")
            return True
        return False

    def compare(self, committed, sent, rows):
        """Whatever one witness has seen and another cannot have."""
        for name, device in sent:
            if name not in committed:
                self.faults.append(f"{name} was sent to device {device} and never committed")
        for (name, device), own in rows.items():
            if any(row.outcome == "delivered" for row in own) and not sent.get((name, device)):
                self.faults.append(f"{name} is delivered on the ledger; the provider has no request of device {device}")
        for name, devices in committed.items():
            for device in devices:
                if not any(row.final for row in rows.get((name, device), ())):
                    self.faults.append(f"{name} has no final ledger row for device {device}")


def lapsed_batches(ledger):
    """Leases that are known to have lapsed."""
    return {row.batch for row in ledger if row.late or row.reason == "lease_lost"}


def explanation(first, second, rows, lapsed):
    """Why the provider may have accepted the same push twice: `unknown`, `lapsed`, or None."""
    if not same_push(first, second):
        return None
    between = [row for row in rows if first.at - SLACK <= row.at <= second.at + SLACK]
    if any(row.outcome == "unknown" for row in between):
        return "unknown"
    return "lapsed" if any(row.batch in lapsed for row in between) else None


def same_push(first, second):
    """Whether the phone shows the second in place of the first."""
    same = (first.apns_id, first.collapse_id) == (second.apns_id, second.collapse_id)
    return same and bool(second.collapse_id)


def in_flight_at(killed_at, held, arrivals, tokens):
    """Of the targets that a worker `held` when it died, those whose request had reached the provider."""
    held, times = set(held), collections.defaultdict(list)
    for arrival in arrivals:
        target = arrival.apns_id, tokens.get(arrival.token)
        if target in held:
            times[target].append(arrival.at)
    return sum(bisect.bisect_right(sorted(instants), killed_at) > 0 for instants in times.values())
