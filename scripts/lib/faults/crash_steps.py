"""The steps at which a worker can be made to die, and what each needs so that a worker gets there.

The names are those of Sources/CrashPoints/CrashPoint.swift; scripts/checks/faults holds the two to each other.
"""

import collections

# `most`: the last arrival at which it may happen; a seed draws one up to it.
# `before`: what the round does for the step: `heirs`: a worker has died and left leases; `cut`: a claim's answer is
#     swallowed; `stop`: the worker is told to stop once it is at work; `stop-twice`: and told again at once.
# `settings`: the worker's, beside those of all.
Step = collections.namedtuple("Step", "most before settings", defaults=(1, None, {}))

FEW = {"POSTBELL_CONCURRENCY": "4", "POSTBELL_RECHECK_AFTER": "5ms"}

STEPS = {
    "claim-unsent": Step(4),
    "claim-sent": Step(4),
    "claim-answered": Step(4),
    "recheck-sent": Step(3, settings=FEW),
    "recheck-answered": Step(3, settings=FEW),
    "connecting": Step(),
    "connected": Step(),
    "request-handed-over": Step(8),
    "request-framed": Step(30),
    "request-written": Step(8),
    "answer-received": Step(8),
    "answer-judged": Step(8),
    "settle-unsent": Step(6),
    "settle-sent": Step(6),
    "settle-answered": Step(6),
    "effects-unsent": Step(3),
    "effects-sent": Step(3),
    "effects-answered": Step(3),
    "renew-sent": Step(),
    "renew-answered": Step(),
    "recover-sent": Step(before="heirs"),
    "recovered": Step(before="heirs"),
    "adopt-sent": Step(before="cut"),
    "heartbeat-sent": Step(2),
    "draining": Step(before="stop"),
    "aborting": Step(before="stop-twice"),
    "drained": Step(before="stop"),
    "ended": Step(before="stop"),
}

SIGNALS = ("KILL", "STOP", "TERM")
