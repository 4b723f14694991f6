"""How old the transactions of some sessions were."""


class Transactions:
    """How old the oldest transaction was, from samples of (pid, state, age by xact_start, what it does).

    A session that is told of notifications while it is idle reads them in a transaction of its own, microseconds long.
    The server gives it the time of the session's last statement as its start (StartTransaction, xact.c), which for one
    that listens is up to a heartbeat ago, and leaves the state at idle. So the age of such a one is for how long it was
    seen without a gap.
    """

    def __init__(self):
        self.oldest, self.what, self.idle = 0.0, "", 0
        self.reading = {}  # pid to when it was first seen, of those that the last sample has seen too

    def sample(self, now, sessions):
        reading = {}
        for pid, state, age, what in sessions:
            if state == "idle":
                reading[pid] = self.reading.get(pid, now)
                age = now - reading[pid]
            elif state and state.startswith("idle in transaction"):
                self.idle += 1
            if age > self.oldest:
                self.oldest, self.what = age, what
        self.reading = reading
