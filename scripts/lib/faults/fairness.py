"""What may be said of tenants, urgencies and principals that share a worker; each judge answers what is wrong."""

import math

# Claims from a commit to the one that takes its row: the first may have been decided on before.
CYCLES = 2
# Shares that one search of the queue finds on a route.
SEARCH = 64
# Points by which the share of bulk rows may differ from the one that is set, over all and in the worst part of it.
SHARE, PART = 1.0, 3.0
# Megabytes that a worker may grow by, and how much later others may be served.
GROWTH, FACTOR = 20, 1.5


def judge_waits(name, waits, expected, most=CYCLES):
    """`waits`: claims and seconds until each was served."""
    faults = []
    if len(waits) != expected:
        faults.append(f"{name}: {expected - len(waits)} of {expected} were not served within a minute")
    late = [claims for claims, _ in waits if claims > most]
    if late:
        faults.append(f"{name}: {len(late)} of {expected} were served by a later claim than number {most}, the last "
                      f"by number {max(late)}")
    return faults


def judge_rounds(name, waits, expected, shares):
    """The same where more shares have work than one search finds: it goes round, one search for each claim."""
    return judge_waits(name, waits, expected, CYCLES * math.ceil(shares / SEARCH))


def judge_share(parts, configured):
    """`parts`: urgent and bulk rows served in each stretch of time, both waiting all along."""
    urgent, bulk = (sum(part[index] for part in parts) for index in (0, 1))
    if not urgent + bulk:
        return ["nothing was served"]
    faults = []
    share = 100 * bulk / (urgent + bulk)
    if abs(share - configured) > SHARE:
        faults.append(f"bulk had {share:.1f} % of what was served, {configured} % is its share")
    for number, part in enumerate(parts):
        share = 100 * part[1] / sum(part) if sum(part) else 0
        if abs(share - configured) > PART:
            faults.append(f"stretch {number + 1}: bulk had {share:.1f} % of {sum(part)}")
    return faults


def judge_crowd(devices, page, arrivals, pages):
    """`arrivals`: how often each token was sent to; `pages`: targets of each claim of the notification."""
    faults = []
    twice = sum(count > 1 for count in arrivals.values())
    if len(arrivals) != devices or twice:
        faults.append(f"{len(arrivals)} of {devices} devices were sent to, {twice} of them more than once")
    if max(pages, default=0) > page or len(pages) < math.ceil(devices / page):
        faults.append(f"{len(pages)} pages, the largest of {max(pages, default=0)} devices, at most {page} are allowed")
    return faults


def judge_memory(before, most):
    grown = most - before
    return [f"the worker grew by {grown:.1f} MB, at most {GROWTH}"] if grown > GROWTH else []


def judge_others(without, with_them):
    if with_them > FACTOR * without:
        return [f"p99 of the others {with_them:.0f} ms, {with_them / without:.2f} times that without"]
    return []
