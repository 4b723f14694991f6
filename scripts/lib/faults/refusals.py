"""Minutes of 403: how many provider tokens two workers with all their connections open make of one key."""

import signal
import time
from collections import Counter
from pathlib import Path

from outages import RECOVERY
from stand import Stand, accepts, say, wait_until

CONNECTIONS, STREAMS, ROWS = 4, 25, 5000
# So many requests that all connections are full, and answers so late that each of them has some open at any moment.
SETTINGS = {"POSTBELL_CONNECTIONS": str(CONNECTIONS), "POSTBELL_CONCURRENCY": str(CONNECTIONS * STREAMS)}
BEFORE = ["apns delay 1s"]
# Called expired first, because only that leads to another token; then by chance one or the other.
STORM = ["apns delay 1s", "apns answer 403 ExpiredProviderToken to 10s",
         "apns answer 403 ExpiredProviderToken to {minutes}m rate 50%",
         "apns answer 403 InvalidProviderToken to {minutes}m"]
REASONS = ("ExpiredProviderToken", "InvalidProviderToken")
# Every so many seconds they are told to try again.
AGAIN = 15
# Distinct provider tokens of one key in an hour.
TOKENS = 3


def refused(options):
    """Provider tokens refused to everybody: two workers with four connections each must not make more of them than
    Apple allows, also when somebody keeps telling
    them to try again."""
    rows = min(options.rows, ROWS)
    with Stand(options, "403", BEFORE, "--streams", str(STREAMS)) as stand:
        stand.register(rows)
        stand.start_fake()
        with stand.worker(**SETTINGS) as first, stand.worker(**SETTINGS) as second:
            workers = (first, second)
            stand.enqueue(1, rows)
            held = await_connections(stand, workers)
            stand.play([line.format(minutes=options.minutes) for line in STORM])
            for instant in range(AGAIN, 60 * options.minutes, AGAIN):
                stand.wait_for(instant)
                try_again(workers)
            # The provider's clock began a little later than ours: a probe within the trouble costs a pause.
            stand.wait_for(60 * options.minutes + 5)
            try_again(workers)
            left = stand.wait_until_settled(RECOVERY)
        requests = stand.requests()
        refusals = [request for request in requests if request["status"] == 403]
        reasons = Counter(request["reason"] for request in refusals)
        struck = struck_connections(requests)
        tokens = most_tokens_in_an_hour(requests)
        faults = stand.common_faults(accepts(requests), rows)
        faults += [f"no 403 {reason} was answered" for reason in REASONS if not reasons[reason]]
        if struck < len(workers) * CONNECTIONS:
            faults.append(f"{struck} connections that had served were refused, not {len(workers) * CONNECTIONS}")
        if tokens > TOKENS:
            faults.append(f"{tokens} provider tokens in an hour, at most {TOKENS} are allowed")
        if left:
            faults.append(f"{left} rows still wait {RECOVERY} s after the trouble")
        if stand.cleared():
            faults.append(f"{stand.cleared()} tokens were cleared")
        by_reason = ", ".join(f"{reason} {reasons[reason]}" for reason in REASONS)
        later = len({request["connection"] for request in refusals}) - struck
        return say(f"403 for {options.minutes} min",
                   f"rows {rows}, 2 workers with {held[0]} and {held[1]} connections as it began, {struck} of them "
                   f"refused and {later} made later, refusals {len(refusals)} ({by_reason}), provider tokens {tokens} "
                   f"(at most {TOKENS}), tokens cleared {stand.cleared()}", faults)


def await_connections(stand, workers):
    """Waits until each worker has all its connections open, and requests on them; answers how many each has."""
    def held():
        return [established(worker.pid, stand.port()) for worker in workers]

    wait_until(f"each worker holds {CONNECTIONS} connections", lambda: held() == [CONNECTIONS] * len(workers), 60)
    time.sleep(2)
    return held()


def try_again(workers):
    """As an operator who has looked after it."""
    for worker in workers:
        worker.process.send_signal(signal.SIGHUP)


def established(process, port):
    """How many connections to `port` a process has open."""
    sockets = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        try:
            sockets.add(str(descriptor.readlink()))
        except FileNotFoundError:
            pass  # closed meanwhile
    lines = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    return sum(f"socket:[{line[9]}]" in sockets for line in lines
               if line[2].endswith(f":{port:04X}") and line[3] == "01")


def struck_connections(requests):
    """How many connections had served before the first refusal and were then refused."""
    first = next((index for index, request in enumerate(requests) if request["status"] == 403), len(requests))
    served = {request["connection"] for request in requests[:first]}
    return len(served & {request["connection"] for request in requests[first:] if request["status"] == 403})


def most_tokens_in_an_hour(requests):
    """The most provider tokens of one key that were made within an hour: distinct pairs of `kid` and `iat`."""
    tokens = {(request["jwt"].get("kid"), request["jwt"].get("iat")) for request in requests}
    return max(sum(key == other and 0 <= made - begin < 3600 for other, made in tokens) for key, begin in tokens)
