"""Minutes of 503 and of 429: how often a provider in trouble is asked, and what is left afterwards."""

from stand import Stand, accepts, say

# Repeated as soon as the budget allows: what holds the requests down is the budget and not the waits.
EAGER = {"POSTBELL_APNS_5XX_DELAY": "1s", "POSTBELL_RETRY": ",".join(["1s"] * 20)}
# Requests during the trouble, as a share of rows.
SHARE = 1.1
# After the trouble the first retry comes within a minute, and their number doubles with each round trip; the longest
# wait that Apple's answers ask for here is the half minute of a 429, in a lane that opens step by step.
RECOVERY = 600


def unavailable(options):
    return outage(options, "503", "apns answer 503")


def throttled(options):
    return outage(options, "429", "apns answer 429 TooManyRequests")


def outage(options, name, action):
    seconds = options.minutes * 60
    with Stand(options, name, [f"{action} to {options.minutes}m"]) as stand:
        stand.register(options.rows)
        stand.enqueue(1, options.rows)
        stand.start_fake()
        with stand.worker(**EAGER):
            stand.wait_for(seconds)
            during = [request for request in stand.requests() if request["status"] != 200]
            asked, most = len(during), int(SHARE * options.rows)
            left = stand.wait_until_settled(RECOVERY)
            recovered = stand.passed() - seconds
        requests = stand.requests()
        accepted = accepts(requests)
        faults = stand.common_faults(accepted, options.rows)
        if asked > most:
            faults.append(f"{asked} requests during the trouble, at most {most} are allowed")
        if left:
            faults.append(f"{left} rows still wait {RECOVERY} s after the trouble")
        if stand.cleared():
            faults.append(f"{stand.cleared()} tokens were cleared")
        return say(f"{name} for {options.minutes} min",
                   f"rows {options.rows}, requests meanwhile {asked} (at most {most}), accepted afterwards "
                   f"{len(accepted)} within {recovered:.0f} s, tokens cleared {stand.cleared()}", faults)
